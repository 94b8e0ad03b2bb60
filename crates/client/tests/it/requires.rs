//! Plugins that depend on plugins.

use std::sync::Arc;

use toolyard_client::{Client, Plugin, plugin};

fn client() -> Client {
    Client::builder().base_url("http://127.0.0.1:9").build().unwrap()
}

#[tokio::test]
async fn h67_a_requirement_is_checked_at_registration_with_its_range() {
    for (version, range, fits) in [
        ("1.4.2", "^1.2", true),
        ("2.0.0", "^1.2", false),
        ("1.4.2", ">=1.0.0 <2.0.0", true),
        ("1.4.2", ">= 1.5", false),
        ("1.4.2", "1.x", true),
        ("1.4.2", "1.4.2", true),
        ("1.4.3", "1.4.2", false),
        ("0.9.0", "^1 || ^0.9", true),
        ("1.4.2", "*", true),
        ("one", "*", false),
    ] {
        let client = client();
        client.register(plugin("base", version)).await.unwrap();
        let done = client.register(plugin("top", "1.0.0").requires(format!("base@{range}"))).await;
        assert_eq!(done.is_ok(), fits, "{version} {range}");
        if !fits {
            let text = done.unwrap_err().to_string();
            let wanted =
                format!("Plugin \"top\" requires \"base@{range}\", but version {version} is registered");
            assert_eq!(text, wanted);
        }
    }
    let missing = client().register(plugin("top", "1.0.0").requires("base")).await.unwrap_err().to_string();
    assert_eq!(missing, "Plugin \"top\" requires plugin \"base\", which is not registered");
    let odd =
        client().register(plugin("top", "1.0.0").requires("base@nonsense")).await.unwrap_err().to_string();
    assert_eq!(odd, "Plugin \"top\": \"base@nonsense\" is not name@range");
}

#[tokio::test]
async fn h67_several_are_ordered_cycles_are_refused_and_what_is_needed_stays() {
    let all = |pairs: &[(&str, &str)]| -> Vec<Arc<dyn Plugin>> {
        let made = |(name, needs): &(&str, &str)| {
            let built = plugin(*name, "1.0.0");
            let built = if needs.is_empty() { built } else { built.requires(*needs) };
            Arc::new(built) as Arc<dyn Plugin>
        };
        pairs.iter().map(made).collect()
    };
    let ordered = client();
    ordered.register_all(all(&[("c", "b@^1"), ("a", ""), ("b", "@x/d"), ("@x/d", "")])).await.unwrap();
    assert_eq!(ordered.plugin_names(), ["a", "@x/d", "b", "c"]);
    let kept = ordered.unregister("b").await.unwrap_err().to_string();
    assert_eq!(kept, "Plugin \"b\" is required by plugin \"c\"");
    ordered.unregister_all().await;
    assert!(ordered.plugin_names().is_empty());

    let client = client();
    let cycle = client.register_all(all(&[("a", "b"), ("b", "c"), ("c", "a"), ("d", "")])).await.unwrap_err();
    assert_eq!(cycle.to_string(), "Plugins require each other: a, b, c");
    assert!(client.plugin_names().is_empty(), "nothing of them is registered");
}
