//! X10: a redirect is a new address, and nothing secret goes to a new host.

use std::time::Duration;

use bytes::Bytes;
use secrecy::SecretString;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use toolyard_egress::{Door, EgressError, Header, Letter, Only, Opened, Patience, Verb, Whole};

use crate::server::{Server, ok, redirect};

const PATIENCE: Patience =
    Patience { head: Duration::from_secs(10), idle: Duration::from_secs(10), bytes: 1 << 20 };

fn door(open: &[&Server]) -> Door {
    let hosts: Vec<String> = open.iter().map(|server| format!("127.0.0.1:{}", server.port)).collect();
    Door::guarded(Opened::parse(&hosts).unwrap()).unwrap()
}

async fn ask(door: &Door, verb: Verb, url: &str, body: Option<&'static str>) -> Result<Whole, EgressError> {
    let target = door.target(url)?;
    let headers = [
        Header::bearer(&"canary-bearer".into()),
        Header::chosen("X-Api-Key", SecretString::from("canary-key")).unwrap(),
    ];
    let body = body.map(|text| Bytes::from_static(text.as_bytes()));
    let letter = Letter { verb, target: &target, headers: &headers, accept: "*/*", body, patience: PATIENCE };
    door.ask(letter, Duration::from_secs(10)).await
}

#[tokio::test]
async fn x10_three_redirects_are_followed_and_a_fourth_is_refused() {
    let hops = |n: usize| (0..n).map(|_| redirect(302, "/next")).collect::<Vec<_>>();
    let server = Server::start(hops(3)).await;
    assert_eq!(ask(&door(&[&server]), Verb::Get, &server.url("/"), None).await.unwrap().body, b"done");
    assert_eq!(server.seen().len(), 4);
    let server = Server::start(hops(4)).await;
    let error = ask(&door(&[&server]), Verb::Get, &server.url("/"), None).await.unwrap_err();
    assert_eq!(error.to_string(), "the address redirects more than 3 times");
    assert_eq!(server.seen().len(), 4);
}

#[tokio::test]
async fn x10_a_redirect_to_the_inside_reaches_nobody() {
    let canary = Server::start(Vec::new()).await;
    for to in [
        canary.url("/"),
        format!("//127.1:{}/", canary.port),
        format!("http://2130706433:{}/", canary.port),
        format!("http://[::ffff:127.0.0.1]:{}/", canary.port),
        format!("http://localhost:{}/", canary.port),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        "http://metadata.google.internal/".to_owned(),
    ] {
        for status in [301, 302, 303, 307, 308] {
            let server = Server::start(vec![redirect(status, &to)]).await;
            let error = ask(&door(&[&server]), Verb::Get, &server.url("/"), None).await.unwrap_err();
            assert!(matches!(error, EgressError::Inside), "{status} {to}: {error:?}");
        }
    }
    for to in ["file:///etc/passwd", "gopher://127.0.0.1/", "http://", "http://u:p@example.com/", "ht\\tp:"] {
        let server = Server::start(vec![redirect(302, to)]).await;
        let error = ask(&door(&[&server]), Verb::Get, &server.url("/"), None).await.unwrap_err();
        let refused = matches!(&error, EgressError::Astray(why) if matches!(**why, EgressError::Refused(_)));
        assert!(refused, "{to}: {error:?}");
        assert!(!error.never_sent(), "whoever redirected had the request");
    }
    assert_eq!(canary.seen(), Vec::<String>::new());
}

#[tokio::test]
async fn x10_credentials_stay_with_their_host() {
    let other = Server::start(Vec::new()).await;
    let first = Server::start(vec![redirect(302, "/again"), redirect(302, &other.url("/elsewhere"))]).await;
    let answer = ask(&door(&[&first, &other]), Verb::Get, &first.url("/"), None).await.unwrap();
    assert_eq!((answer.status, answer.body), (200, b"done".to_vec()));
    for request in first.seen() {
        assert!(request.contains("canary-bearer") && request.contains("canary-key"), "{request}");
    }
    let seen = other.seen().join("");
    assert!(seen.starts_with("get /elsewhere ") && !seen.contains("canary"), "{seen}");
}

#[tokio::test]
async fn x10_a_post_becomes_a_get_or_stays_with_its_host() {
    let server = Server::start(vec![redirect(303, "/seen")]).await;
    ask(&door(&[&server]), Verb::Post, &server.url("/"), Some("{}")).await.unwrap();
    let seen = server.seen();
    assert!(seen[1].starts_with("get /seen ") && seen[1].ends_with("\r\n\r\n"), "{seen:?}");
    assert!(!seen[1].contains("content-type"), "{seen:?}");

    let server = Server::start(vec![redirect(307, "/moved")]).await;
    ask(&door(&[&server]), Verb::Put, &server.url("/"), Some("{\"a\":1}")).await.unwrap();
    let seen = server.seen();
    assert!(seen[1].starts_with("put /moved ") && seen[1].ends_with("{\"a\":1}"), "{seen:?}");

    let other = Server::start(Vec::new()).await;
    for (verb, body) in [(Verb::Post, Some("{}")), (Verb::Patch, Some("{}")), (Verb::Delete, None)] {
        let server = Server::start(vec![redirect(308, &other.url("/"))]).await;
        let error = ask(&door(&[&server, &other]), verb, &server.url("/"), body).await.unwrap_err();
        assert!(error.to_string().contains("to another host"), "{error}");
    }
    assert_eq!(other.seen(), Vec::<String>::new());
}

#[tokio::test]
async fn x10_the_whole_answer_has_one_deadline_over_all_hops() {
    // Ten bytes promised, two sent: the body never ends.
    let slow = "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhe".to_owned();
    let listener = Server::start(vec![redirect(302, "/slow"), slow]).await;
    let door = door(&[&listener]);
    let target = door.target(&listener.url("/")).unwrap();
    let letter = Letter {
        verb: Verb::Get,
        target: &target,
        headers: &[],
        accept: "*/*",
        body: None,
        patience: Patience { bytes: 4, ..PATIENCE },
    };
    let error = door.ask(letter.clone(), Duration::from_millis(300)).await.unwrap_err();
    assert!(matches!(error, EgressError::Broken(_) | EgressError::Timeout { .. }), "{error:?}");
    let big = Server::start(vec![ok("hello")]).await;
    let door = self::door(&[&big]);
    let target = door.target(&big.url("/")).unwrap();
    let error = door.ask(Letter { target: &target, ..letter }, Duration::from_secs(10)).await.unwrap_err();
    assert_eq!(error.to_string(), "the answer is larger than 4 bytes");
}

/// A piece now and then is no silence: only the whole time ends it.
#[tokio::test]
async fn x10_an_answer_that_dribbles_ends_at_its_deadline() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/keys", listener.local_addr().unwrap());
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        assert_ne!(socket.read(&mut [0; 1024]).await.unwrap(), 0);
        let mut written = socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 99999\r\n\r\n").await;
        while written.is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
            written = socket.write_all(b"{").await;
        }
    });
    let door = Door::operator().unwrap();
    let target = door.target(&url).unwrap();
    let letter = Letter {
        verb: Verb::Get,
        target: &target,
        headers: &[],
        accept: "*/*",
        body: None,
        patience: PATIENCE,
    };
    let total = Duration::from_millis(200);
    let error = door.ask(letter, total).await.unwrap_err();
    assert!(matches!(error, EgressError::Timeout { after } if after == total), "{error:?}");
    // Nobody goes on reading: the writer hears that the line is cut.
    tokio::time::timeout(Duration::from_secs(30), tasks.join_next()).await.unwrap();
}

#[tokio::test]
async fn x10_a_narrowed_door_leads_to_its_hosts_alone_on_every_hop() {
    let other = Server::start(Vec::new()).await;
    let server = Server::start(vec![redirect(302, &other.url("/")), redirect(302, "/next")]).await;
    let wide = door(&[&server, &other]);
    let narrow = wide.only(Only::parse(&[format!("127.0.0.1:{}", server.port)]).unwrap());
    let refused = "the address is not one of the hosts asked for";
    assert_eq!(narrow.target(&other.url("/")).unwrap_err().to_string(), refused);
    // A target of the wide door does not help either.
    let target = wide.target(&other.url("/")).unwrap();
    let letter = Letter {
        verb: Verb::Get,
        target: &target,
        headers: &[],
        accept: "*/*",
        body: None,
        patience: PATIENCE,
    };
    assert_eq!(narrow.send(letter).await.unwrap_err().to_string(), refused);
    let error = ask(&narrow, Verb::Get, &server.url("/"), None).await.unwrap_err();
    assert_eq!(error.to_string(), refused);
    assert!(other.seen().is_empty());
    assert_eq!(ask(&narrow, Verb::Get, &server.url("/"), None).await.unwrap().body, b"done");
    // Without a port the usual one is meant.
    let usual = wide.only(Only::parse(&["127.0.0.1"]).unwrap());
    assert_eq!(usual.target(&server.url("/")).unwrap_err().to_string(), refused);
}

/// A repeat of such a request would be a second effect.
#[tokio::test]
async fn what_was_redirected_astray_was_sent() {
    let nobody = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    // The body does not go to another host with 307; with 303 nobody is there.
    for status in [303, 307] {
        let server = Server::start(vec![redirect(status, &format!("http://{nobody}/"))]).await;
        let opened = [format!("127.0.0.1:{}", server.port), nobody.to_string()];
        let door = Door::guarded(Opened::parse(&opened).unwrap()).unwrap();
        let error = ask(&door, Verb::Post, &server.url("/"), Some("{}")).await.unwrap_err();
        assert!(matches!(&error, EgressError::Astray(_)) && !error.never_sent(), "{status}: {error:?}");
        assert_eq!(server.seen().len(), 1);
    }
}
