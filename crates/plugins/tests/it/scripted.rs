//! Hooks of bundles: JavaScript at each point of the loop.

use std::sync::Arc;

use serde_json::{Value, json};
use toolyard_plugins::bundle::{Bundle, Candidate, Keyring, Moment, Policy};
use toolyard_plugins::hooks::{
    Answer, Called, Chain, Emitted, Hook, HookError, Prompt, Ran, Said, SaidBy, Scene, State, Stopped,
};
use toolyard_plugins::sandbox::Sandbox;
use toolyard_plugins::scripted::Scripted;
use toolyard_protocol::run::Usage;
use toolyard_protocol::{CallId, RunId, Timestamp};

use crate::world::settings;

fn bundle(id: &str, hooks: Value, more: Value) -> Arc<Bundle> {
    let mut document = json!({ "id": id, "name": id, "version": "1.0.0", "tools": [], "hooks": hooks });
    document.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let candidate = Candidate::read(document.to_string().as_bytes()).unwrap();
    let moment = Moment::at(Timestamp::from_millis(0));
    Arc::new(Keyring::empty().admit(candidate, Policy::Development, moment).unwrap())
}

fn scene() -> Scene {
    let message = "msg_1".to_owned();
    Scene {
        run: RunId::mint(),
        agent: "assistant".to_owned(),
        client: None,
        thread: None,
        provider: "demo".to_owned(),
        model: "demo-1".to_owned(),
        spoken: None,
        message,
        step: 3,
        trace: None,
    }
}

struct World {
    sandbox: Sandbox,
}

impl World {
    fn new() -> Self {
        Self { sandbox: Sandbox::new(settings()) }
    }

    fn hook(&self, id: &str, hooks: Value, more: Value) -> Arc<Scripted> {
        let options = json!({ "word": "ahoy" });
        Arc::new(Scripted::new(bundle(id, hooks, more), options, Some(self.sandbox.clone()), None))
    }

    fn chain(&self, hooks: &[(&str, Value, Value)]) -> Chain {
        let hooks: Vec<Arc<dyn Hook>> = (hooks.iter())
            .map(|(id, hooks, more)| self.hook(id, hooks.clone(), more.clone()) as Arc<dyn Hook>)
            .collect();
        Chain::new(hooks.into(), scene(), State::new())
    }
}

fn rewrites() -> Value {
    json!({ "rewrites": true })
}

#[tokio::test]
async fn u2_u7_chunks_pass_one_by_one_in_one_runtime() {
    let count = "globalThis.n = (globalThis.n ?? 0) + 1; return n % 2 ? chunk + n : undefined";
    let mut chain = World::new().chain(&[("count", json!({ "onTextChunk": count }), rewrites())]);
    for (given, made) in [(["a", "b"], ["a1", "b"]), (["ü", "𝄞"], ["ü3", "𝄞"])] {
        let mut chunks: Vec<String> = given.iter().map(|&c| c.to_owned()).collect();
        chain.text_chunks(&mut chunks).await.unwrap();
        assert_eq!(chunks, made);
    }
}

#[tokio::test]
async fn u3_code_knows_where_it_is() {
    let hooks = json!({ "onTextEnd":
        "const { provider, messageId, step, options, threadId } = context; \
         context.events.emit('where', { provider, messageId, step, options, threadId })" });
    let mut chain = World::new().chain(&[("where", hooks, json!({}))]);
    chain.text_end(&mut "t".to_owned()).await.unwrap();
    let value = json!({
        "provider": "demo", "messageId": "msg_1", "step": 3, "options": { "word": "ahoy" }, "threadId": null,
    });
    let (plugin, name) = ("where".to_owned(), "where".to_owned());
    assert_eq!(chain.leave().emitted, [Emitted { plugin, name, value }]);
}

#[tokio::test]
async fn u5_the_state_passes_from_plugin_to_plugin() {
    let add = |name: &str| json!({ "onTextEnd": format!("context.state.set('seen', [...(context.state.get('seen') ?? []), '{name}'])") });
    let mut chain = World::new().chain(&[("a", add("a"), json!({})), ("b", add("b"), json!({}))]);
    for _ in 0..2 {
        chain.text_end(&mut String::new()).await.unwrap();
    }
    assert_eq!(chain.leave().state["seen"], json!(["a", "b", "a", "b"]));
}

#[tokio::test]
async fn u6_u8_u9_u10_every_point_takes_what_the_code_returns() {
    let hooks = json!({
        "onUserMessage": "input.messages.push({ role: 'user', content: 'and be brief' }); return input",
        "onBeforeToolCall": "if (call.name === 'rm') return null; if (call.name === 'ls') return { ...call, args: { safe: true } }",
        "onAfterToolCall": "result.untrusted = true; return { was: result.result }",
        "onAgentResponse": "return { text: response.text + '! ' + response.usage.promptTokens + ' ' + response.toolCalls[0].args.path }",
    });
    let mut chain = World::new().chain(&[("all", hooks, rewrites())]);
    let mut prompt = Prompt {
        messages: vec![Said { role: SaidBy::User, content: "hi".to_owned(), index: Some(0) }],
        ..Prompt::default()
    };
    chain.user_message(&mut prompt).await.unwrap();
    assert_eq!(
        prompt.messages[1],
        Said { role: SaidBy::User, content: "and be brief".to_owned(), index: None }
    );
    let called = |name: &str| Called { id: CallId::mint(), name: name.to_owned(), args: json!({}) };
    let (mut skipped, mut changed, mut kept) = (called("rm"), called("ls"), called("cat"));
    assert_eq!(chain.before_tool_call(&mut skipped).await.unwrap().as_deref(), Some("all"));
    assert_eq!(chain.before_tool_call(&mut changed).await.unwrap(), None);
    assert_eq!(chain.before_tool_call(&mut kept).await.unwrap(), None);
    assert_eq!((changed.args, kept.args), (json!({ "safe": true }), json!({})));
    let id = CallId::mint();
    let mut ran =
        Ran { id, name: "cat".to_owned(), args: json!({}), result: json!(1), error: None, untrusted: false };
    chain.after_tool_call(&mut ran).await.unwrap();
    assert_eq!((ran.result, ran.untrusted, ran.error), (json!({ "was": 1 }), true, None));
    let usage = Usage { input_tokens: 7, ..Usage::default() };
    let calls = vec![Called { args: json!({ "path": "a.txt" }), ..called("cat") }];
    let mut answer = Answer { text: "done".to_owned(), tool_calls: calls, usage, ..Answer::default() };
    chain.agent_response(&mut answer).await.unwrap();
    assert_eq!(answer.text, "done! 7 a.txt");
}

/// Whatever the code does, the value stays and the next plugin gets its turn.
#[tokio::test]
async fn u11_u30_code_that_fails_changes_nothing_and_the_others_hear_of_it() {
    let hears = json!({ "onError": "context.events.emit('heard', error)" });
    for (code, why) in [
        ("context.state.set('x', 1); context.events.emit('x'); throw new Error('no')", "Error: no"),
        ("return 7", "onTextEnd returned something that is no text"),
        ("return (", "the code is not valid JavaScript"),
        ("return 'other'", "it changes the answer, and its document does not say"),
        ("context.events.emit('a b')", "the name of an event is"),
        ("await new Promise(() => {})", "the promise never settles"),
        ("JSON.stringify = () => '{'; return 'x'.repeat(2e6)", "the result is larger than its limit"),
    ] {
        let ill = ("ill", json!({ "onTextEnd": code }), json!({}));
        let mut chain = World::new().chain(&[ill, ("nurse", hears.clone(), json!({}))]);
        let mut text = "t".to_owned();
        chain.text_end(&mut text).await.unwrap();
        assert_eq!(text, "t");
        let left = chain.leave();
        assert_eq!(left.state, State::new(), "{code}");
        assert_eq!(left.emitted.len(), 1, "{code}: {left:?}");
        let heard = left.emitted[0].value.as_str().unwrap();
        assert!(heard.starts_with(&format!("plugin ill failed: {why}")), "{heard}");
    }
}

#[tokio::test]
async fn spec_30_a_critical_bundle_stops() {
    let hooks = json!({ "onUserMessage": "throw new RangeError('enough')" });
    let mut chain = World::new().chain(&[("strict", hooks, json!({ "critical": true }))]);
    let stopped = chain.user_message(&mut Prompt::default()).await.unwrap_err();
    let error = HookError("RangeError: enough".to_owned());
    assert_eq!(stopped, Stopped { plugin: "strict".to_owned(), error });
}

/// After a throw the code's own idea of the state is not believed.
#[tokio::test]
async fn u5_what_a_failed_hook_remembered_is_forgotten() {
    let code = "context.state.set('n', (context.state.get('n') ?? 0) + 1); if (text === 'bad') throw new Error('no')";
    let mut chain = World::new().chain(&[("n", json!({ "onTextEnd": code }), json!({}))]);
    for text in ["good", "bad", "good"] {
        chain.text_end(&mut text.to_owned()).await.unwrap();
    }
    assert_eq!(chain.leave().state["n"], 2);
}

#[tokio::test]
async fn u12_a_bundle_begins_once_in_a_runtime_and_ends_with_its_step() {
    let world = World::new();
    let hooks = json!({
        "initialize": "globalThis.from = init.provider; globalThis.times = (globalThis.times ?? 0) + 1",
        "onTextEnd": "context.events.emit('begun', [from, times])",
        "destroy": "from = 'gone'",
    });
    let hook = world.hook("life", hooks, json!({}));
    let mut chain = Chain::new([hook.clone() as Arc<dyn Hook>].into(), scene(), State::new());
    for _ in 0..2 {
        chain.text_end(&mut String::new()).await.unwrap();
    }
    let begun: Vec<Value> = chain.leave().emitted.into_iter().map(|e| e.value).collect();
    assert_eq!(begun, [json!(["demo", 1]), json!(["demo", 1])]);
    hook.close(&scene()).await;
    assert_eq!(world.sandbox.idle_processes().len(), 1, "its process is free");
}

#[tokio::test]
async fn without_a_sandbox_a_bundle_fails_and_says_why() {
    let made = bundle("a", json!({ "onTextEnd": "return 1" }), json!({ "critical": true }));
    let hook: Arc<dyn Hook> = Arc::new(Scripted::new(made, Value::Null, None, None));
    let stopped = Chain::new([hook].into(), scene(), State::new()).text_end(&mut String::new()).await;
    assert_eq!(stopped.unwrap_err().error, HookError("this gateway has no sandbox".to_owned()));
}

#[test]
fn a_bundle_cannot_take_the_name_of_a_plugin_that_ships() {
    let document = json!({
        "id": "pii-filter", "name": "Other", "version": "1.0.0", "hooks": { "onTextEnd": "return text" },
    });
    let refused = Candidate::read(document.to_string().as_bytes()).unwrap_err().to_string();
    assert!(refused.contains("pii-filter is a plugin of the gateway itself"), "{refused}");
}
