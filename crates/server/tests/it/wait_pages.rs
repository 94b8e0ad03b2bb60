//! Pages of the ledger whose end lies among the waits of others.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::Method;
use serde_json::{Value, json};
use toolyard_store::{Settings, Store, StoreError};

use crate::gateway::{Folder, Gateway, ask, fine};
use crate::yard::{Yard, join, new_space};

/// More than one request looks through.
const OTHERS: usize = 5200;

/// A question in a space of this person and the agent; answers its wait.
async fn asked(yard: &Yard, user: &str, entity: &str) -> String {
    let space = new_space(&yard.gateway).await;
    for one in [&yard.agent_entity, entity] {
        join(&yard.gateway, &space, one).await;
    }
    let path = format!("/api/smart-spaces/{space}/messages");
    let call = json!({"content": "call getUserApproval {}"});
    let posted = fine(yard.gateway.user(user, Method::POST, &path).json(&call)).await;
    let wait = yard.wait_of(posted["runs"][0]["runId"].as_str().unwrap()).await;
    wait["id"].as_str().unwrap().to_owned()
}

/// Makes many of one wait, all of the same moment.
async fn multiply(folder: &Folder, wait: &str) {
    let settings = Settings::Sqlite { folder: folder.path().join("data") };
    let store = Store::open(&settings).await.unwrap();
    let columns = "root, space, kind, tool, visibility, rule, payload, opened_seq, opened_at, expires_at";
    let sql = format!(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {OTHERS}) \
         INSERT INTO waits (tenant, run, id, call, {columns}) \
         SELECT tenant, run, id || '_' || i, call || '_' || i, {columns} FROM waits, n WHERE id = '{wait}'"
    );
    let sql: &'static str = sql.leak();
    let made = store.write::<_, StoreError, _>(move |tx| Box::pin(async move { tx.exec(sql, &[]).await }));
    assert_eq!(made.await.unwrap(), OTHERS as u64);
    store.close().await;
}

/// Walks all pages: the waits of each, and where the next one began.
async fn pages(gateway: &Gateway, user: Option<&str>) -> Vec<(Vec<String>, Option<String>)> {
    let (mut pages, mut after) = (Vec::new(), String::new());
    loop {
        let path = format!("/api/waits?limit=200{after}");
        let request = match user {
            Some(user) => gateway.user(user, Method::GET, &path),
            None => gateway.secret(Method::GET, &path),
        };
        let page: Value = fine(request).await;
        let ids = page["waits"].as_array().unwrap().iter();
        let ids = ids.map(|wait| wait["id"].as_str().unwrap().to_owned()).collect();
        let next = page["next"].as_str().map(str::to_owned);
        after = next.as_ref().map(|next| format!("&after={next}")).unwrap_or_default();
        let last = next.is_none();
        pages.push((ids, next));
        if last {
            return pages;
        }
    }
}

#[tokio::test]
async fn x7_a_page_that_ends_among_the_waits_of_others_names_none_of_them() {
    let yard = Yard::new().await;
    let first = asked(&yard, "ann", &yard.ann).await;
    let foreign = asked(&yard, "bob", &yard.bob).await;
    let last = asked(&yard, "ann", &yard.ann).await;
    let folder = yard.gateway.kill();
    multiply(&folder, &foreign).await;
    let gateway = Gateway::start_with(folder, &[]).await;

    let hers = pages(&gateway, Some("ann")).await;
    let ids: Vec<&Vec<String>> = hers.iter().map(|(ids, _)| ids).collect();
    assert_eq!(ids, [&vec![first], &vec![last]], "all of hers, over more waits than one request looks at");
    let next = hers[0].1.clone().unwrap();
    let bytes = URL_SAFE_NO_PAD.decode(&next).unwrap();
    let token = foreign.trim_start_matches("wait_");
    for told in [next.as_bytes(), &bytes] {
        assert!(!told.windows(token.len()).any(|part| part == token.as_bytes()), "{next}");
        assert!(!told.windows(5).any(|part| part == b"wait_"), "{next}");
    }
    // Nobody makes up a position, nor changes one.
    let bent = format!("{}A", &next[..next.len() - 2]);
    for made_up in [format!("0~{foreign}"), bent, next[1..].to_owned(), "17".to_owned()] {
        let request = gateway.user("ann", Method::GET, &format!("/api/waits?after={made_up}"));
        let (status, answer) = ask(request).await;
        assert_eq!((status.as_u16(), &answer["error"]["code"]), (400, &json!("invalid_cursor")), "{made_up}");
    }
    // A backend walks all of them, each once.
    let mut all: Vec<String> = pages(&gateway, None).await.into_iter().flat_map(|(ids, _)| ids).collect();
    assert_eq!(all.len(), OTHERS + 3);
    all.sort();
    all.dedup();
    assert_eq!(all.len(), OTHERS + 3);
}
