//! X10: no spelling of an address leads inside.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use secrecy::SecretString;
use toolyard_egress::{Door, EgressError, Found, Header, Letter, Names, Opened, Patience, Verb};

use crate::server::Server;

const PATIENCE: Patience =
    Patience { head: Duration::from_secs(10), idle: Duration::from_secs(10), bytes: 1 << 20 };

/// A name service with answers of its own; each lookup takes the next one, and
/// the last one stays.
#[derive(Debug, Default)]
struct Made {
    answers: Mutex<HashMap<String, Vec<Vec<IpAddr>>>>,
    asked: Mutex<Vec<String>>,
}

impl Made {
    fn with(self, name: &str, answers: &[&[&str]]) -> Self {
        let read = |list: &&[&str]| list.iter().map(|ip| ip.parse().unwrap()).collect();
        self.answers.lock().unwrap().insert(name.to_owned(), answers.iter().map(read).collect());
        self
    }
    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

impl Names for Made {
    fn find(&self, host: &str) -> Found {
        self.asked.lock().unwrap().push(host.to_owned());
        let mut answers = self.answers.lock().unwrap();
        let found =
            answers.get_mut(host).map(|list| if list.len() > 1 { list.remove(0) } else { list[0].clone() });
        Box::pin(async move { found.ok_or_else(|| std::io::Error::from(std::io::ErrorKind::NotFound)) })
    }
}

fn door(names: Made, opened: &[&str]) -> (Door, Arc<Made>) {
    let names = Arc::new(names);
    (Door::guarded_by(Opened::parse(opened).unwrap(), names.clone()).unwrap(), names)
}

/// Goes all the way as far as the door lets it.
async fn visit(door: &Door, url: &str) -> Result<u16, EgressError> {
    let target = door.target(url)?;
    let letter = Letter {
        verb: Verb::Get,
        target: &target,
        headers: &[],
        accept: "*/*",
        body: None,
        patience: PATIENCE,
    };
    door.send(letter).await.map(|answer| answer.status)
}

/// `{p}` is the port of a listener on 127.0.0.1 and ::1 that must stay alone.
const INSIDE: &[&str] = &[
    // Loopback, in the forms that parsers know.
    "http://127.0.0.1:{p}/",
    "http://127.0.0.2:{p}/",
    "http://127.255.255.254:{p}/",
    "http://127.1:{p}/",
    "http://127.0.1:{p}/",
    "http://2130706433:{p}/",
    "http://0x7f000001:{p}/",
    "http://0x7f.0.0.1:{p}/",
    "http://0X7F.0X0.0X0.0X1:{p}/",
    "http://0177.0.0.1:{p}/",
    "http://0177.0000.0000.0001:{p}/",
    "http://017700000001:{p}/",
    "http://127.0x1:{p}/",
    "http://127.0.0.1.:{p}/",
    "http://%31%32%37.0.0.1:{p}/",
    "http://127%2e0%2e0%2e1:{p}/",
    "http://127\u{3002}0\u{3002}0\u{3002}1:{p}/",
    "http://127\u{ff0e}0\u{ff0e}0\u{ff0e}1:{p}/",
    "http://\u{ff11}\u{ff12}\u{ff17}.0.0.1:{p}/",
    "http://\u{2460}\u{2461}\u{2466}.0.0.1:{p}/",
    "HTTP://127.0.0.1:{p}/",
    "hTTps://127.0.0.1:{p}/",
    "http:127.0.0.1:{p}/",
    "http:/127.0.0.1:{p}/",
    "http:///127.0.0.1:{p}/",
    "http://0:{p}/",
    "http://0.0.0.0:{p}/",
    "http://0x0:{p}/",
    "http://00000000:{p}/",
    "http://0.1.2.3:{p}/",
    // The same in IPv6.
    "http://[::1]:{p}/",
    "http://[0:0:0:0:0:0:0:1]:{p}/",
    "http://[0000:0000:0000:0000:0000:0000:0000:0001]:{p}/",
    "http://[::]:{p}/",
    "http://[::ffff:127.0.0.1]:{p}/",
    "http://[::ffff:7f00:1]:{p}/",
    "http://[0:0:0:0:0:ffff:7f00:0001]:{p}/",
    "http://[::127.0.0.1]:{p}/",
    "http://[::ffff:0:127.0.0.1]:{p}/",
    "http://[64:ff9b::127.0.0.1]:{p}/",
    "http://[64:ff9b::7f00:1]:{p}/",
    "http://[64:ff9b:1::7f00:1]:{p}/",
    "http://[2002:7f00:1::]:{p}/",
    "http://[2001::1]:{p}/",
    "http://[fe80::1]:{p}/",
    "http://[fec0::1]:{p}/",
    "http://[fc00::1]:{p}/",
    "http://[fd12:3456:789a::1]:{p}/",
    "http://[ff02::1]:{p}/",
    "http://[2001:db8::1]:{p}/",
    "http://[100::1]:{p}/",
    // Private, shared, reserved.
    "http://10.0.0.1/",
    "http://10.255.255.255/",
    "http://012.0.0.1/",
    "http://0xa.0.0.1/",
    "http://167772161/",
    "http://172.16.0.1/",
    "http://172.31.255.255/",
    "http://192.168.0.1/",
    "http://192.168.1/",
    "http://0xc0a80001/",
    "http://100.64.0.1/",
    "http://100.127.255.255/",
    "http://198.18.0.1/",
    "http://192.0.0.1/",
    "http://192.0.2.1/",
    "http://198.51.100.1/",
    "http://203.0.113.1/",
    "http://192.88.99.1/",
    "http://224.0.0.1/",
    "http://239.255.255.255/",
    "http://240.0.0.1/",
    "http://255.255.255.255/",
    // Where clouds keep their keys.
    "http://169.254.169.254/latest/meta-data/iam/security-credentials/",
    "http://169.254.170.2/v2/credentials",
    "http://169.254.1.1/",
    "http://2852039166/",
    "http://0xa9fea9fe/",
    "http://0251.0376.0251.0376/",
    "http://169.254.43518/",
    "http://[::ffff:169.254.169.254]/",
    "http://[::ffff:a9fe:a9fe]/",
    "http://[64:ff9b::a9fe:a9fe]/",
    "http://[fd00:ec2::254]/",
    "http://100.100.100.200/latest/meta-data/",
    "http://192.0.0.192/opc/v2/",
    "http://168.63.129.16/machine",
    "http://metadata.google.internal/computeMetadata/v1/",
    "http://metadata.google.internal./computeMetadata/v1/",
    "http://metadata/computeMetadata/v1/",
    "http://instance-data/latest/",
    // Names of the inside.
    "http://localhost:{p}/",
    "http://LOCALHOST:{p}/",
    "http://localhost.:{p}/",
    "http://loc%61lhost:{p}/",
    "http://\u{ff4c}ocalhost:{p}/",
    "http://a.localhost:{p}/",
    "http://localhost.localdomain:{p}/",
    "http://printer.local/",
    "http://db.internal:{p}/",
    "http://router.lan/",
    "http://nas.home.arpa/",
    "http://intranet/",
    "http://.",
    "http://kubernetes.default.svc.cluster.local/",
    // Names that the name service sends inside.
    "http://to-loopback.example:{p}/",
    "http://to-loopback.example.:{p}/",
    "http://to-six.example:{p}/",
    "http://mixed.example:{p}/",
    "http://mixed-reversed.example:{p}/",
    "http://mapped.example:{p}/",
    "http://metadata.example/",
];

/// Not even a question of where they lead.
const MALFORMED: &[&str] = &[
    "",
    "127.0.0.1:{p}",
    "//127.0.0.1:{p}/",
    "file:///etc/passwd",
    "file://127.0.0.1/etc/passwd",
    "ftp://127.0.0.1:{p}/",
    "gopher://127.0.0.1:{p}/_GET",
    "dict://127.0.0.1:{p}/",
    "unix:///var/run/docker.sock",
    "http+unix://%2Fvar%2Frun%2Fdocker.sock/",
    "ws://127.0.0.1:{p}/",
    "data:text/plain,hello",
    "javascript:alert(1)",
    "ldap://127.0.0.1:{p}/",
    "http://example.com@127.0.0.1:{p}/",
    "http://example.com:80@127.0.0.1:{p}/",
    "http://user:hunter2@example.com/",
    "http://example.com\\@127.0.0.1:{p}/",
    "http://127.0.0.1:{p}\\@example.com/",
    "http:\\\\127.0.0.1:{p}\\",
    "http://example.com/\r\nHost: 127.0.0.1",
    "http://example.com/%0d%0aX: y HTTP/1.1",
    "http://127.0.0.1\t:{p}/",
    "http://exam\nple.com/",
    " http://127.0.0.1:{p}/",
    "http://127.0.0.1:{p}/ ",
    "http://exa mple.com/",
    "http://[::1",
    "http://[::1%25lo]:{p}/",
    "http://[fe80::1%25eth0]/",
    "http://256.256.256.256/",
    "http://127.0.0.1.1.1/",
    "http://0x7f00000001/",
    "http://127.0.0.1:99999/",
    "http://example.com:0/",
    "http://",
    "http://?x",
    "http://exa%00mple.com/",
    "http://xn--/",
];

fn names() -> Made {
    Made::default()
        .with("to-loopback.example", &[&["127.0.0.1"]])
        .with("to-loopback.example.", &[&["127.0.0.1"]])
        .with("to-six.example", &[&["::1"]])
        .with("mixed.example", &[&["93.184.216.34", "127.0.0.1"]])
        .with("mixed-reversed.example", &[&["127.0.0.1", "93.184.216.34"]])
        .with("mapped.example", &[&["::ffff:127.0.0.1"]])
        .with("metadata.example", &[&["169.254.169.254"]])
}

#[tokio::test]
async fn x10_no_spelling_of_an_inside_address_reaches_the_canary() {
    let canary = Server::start(Vec::new()).await;
    let six = Server::on(&format!("[::1]:{}", canary.port), Vec::new()).await;
    let (door, _) = door(names(), &[]);
    assert!(INSIDE.len() + MALFORMED.len() >= 80);
    for form in INSIDE {
        let url = form.replace("{p}", &canary.port.to_string());
        let error = visit(&door, &url).await.unwrap_err();
        assert!(matches!(error, EgressError::Inside), "{url}: {error:?}");
        let early = door.is_allowed(&url).await.unwrap_err();
        assert!(matches!(early, EgressError::Inside), "{url}: {early:?}");
        assert!(error.to_string().contains("private or reserved network"), "{error}");
    }
    for form in MALFORMED {
        let url = form.replace("{p}", &canary.port.to_string());
        let error = visit(&door, &url).await.unwrap_err();
        assert!(matches!(error, EgressError::Refused(_)), "{url}: {error:?}");
        assert!(!error.causes().contains("hunter2"), "{error}");
    }
    assert_eq!((canary.seen().len(), six.seen().len()), (0, 0));
}

#[tokio::test]
async fn x10_a_name_that_changes_its_mind_is_looked_at_again_by_the_connection_itself() {
    let canary = Server::start(Vec::new()).await;
    let rebinding = Made::default().with("rebind.example", &[&["93.184.216.34"], &["127.0.0.1"]]);
    let (door, names) = door(rebinding, &[]);
    let url = format!("http://rebind.example:{}/", canary.port);
    door.is_allowed(&url).await.unwrap();
    let error = visit(&door, &url).await.unwrap_err();
    assert!(matches!(error, EgressError::Inside), "{error:?}");
    assert_eq!(names.asked().len(), 2);
    assert_eq!(canary.seen().len(), 0);
}

#[tokio::test]
async fn x10_a_connection_goes_to_the_addresses_of_its_one_lookup() {
    let server = Server::start(Vec::new()).await;
    let opened = format!("app.example:{}", server.port);
    // A second lookup would find nobody.
    let names = Made::default().with("app.example", &[&["127.0.0.1"], &["192.0.2.1"]]);
    let (door, names) = door(names, &[&opened]);
    assert_eq!(visit(&door, &format!("http://app.example:{}/x", server.port)).await.unwrap(), 200);
    assert_eq!(names.asked(), ["app.example"]);
    let seen = server.seen().join("");
    assert!(seen.starts_with("get /x ") && seen.contains("\r\nhost: app.example"), "{seen}");
    // The same name on another port is not opened.
    let other = Server::start(Vec::new()).await;
    let url = format!("http://app.example:{}/x", other.port);
    assert!(visit(&door, &url).await.is_err());
    assert_eq!(other.seen().len(), 0);
}

#[tokio::test]
async fn x10_what_the_operator_opened_is_reached() {
    let server = Server::start(Vec::new()).await;
    for entry in ["127.0.0.1".to_owned(), format!("127.0.0.1:{}", server.port)] {
        let (door, names) = door(Made::default(), &[&entry]);
        for host in ["127.0.0.1", "127.1", "[::ffff:127.0.0.1]"] {
            let url = format!("http://{host}:{}/", server.port);
            door.is_allowed(&url).await.unwrap();
            assert_eq!(visit(&door, &url).await.unwrap(), 200, "{url}");
        }
        assert_eq!(names.asked(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn x10_public_addresses_pass_the_check() {
    let names = Made::default().with("public.example", &[&["93.184.216.34", "2606:4700::1111"]]);
    let (door, _) = door(names, &[]);
    for url in [
        "https://public.example/a?b=c",
        "http://public.example:8080/",
        "https://93.184.216.34/",
        "https://[2606:4700::1111]/",
        "https://unknown-today.example/",
        "https://b\u{fc}cher.example/",
    ] {
        door.is_allowed(url).await.unwrap_or_else(|e| panic!("{url}: {e:?}"));
    }
}

#[test]
fn x10_headers_cannot_smuggle_a_second_request_or_another_host() {
    let value = || SecretString::from("canary-value");
    for name in ["x-api-key", "Authorization", "User-Agent", "Content-Type", "accept", "cookie"] {
        assert_eq!(Header::chosen(name, value()).unwrap().name(), name.to_ascii_lowercase());
    }
    for name in [
        "Host",
        "host",
        "Content-Length",
        "transfer-encoding",
        "Connection",
        "Keep-Alive",
        "proxy-connection",
        "Proxy-Authorization",
        "TE",
        "trailer",
        "Upgrade",
        "expect",
        "Accept-Encoding",
        "",
        " x",
        "x y",
        "x:",
        "x\r\ny",
        "x\u{e9}",
        ":authority",
    ] {
        let error = Header::chosen(name, value()).unwrap_err();
        assert!(matches!(error, EgressError::Refused(_)), "{name:?}");
    }
    for text in ["a\r\nhost: b", "a\nb", "a\rb", "a\0b", "\u{7f}"] {
        let error = Header::chosen("x-a", text.to_owned().into()).unwrap_err();
        assert!(!error.causes().contains("host"), "{error}");
    }
    assert!(!format!("{:?}", Header::chosen("x-a", value()).unwrap()).contains("canary"));
}
