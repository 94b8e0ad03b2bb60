//! Letters, handed in to a real mail server with a certificate of its own.
//!
//! `scripts/setup-referees` installs the server. These tests fail without it.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use reqwest::Method;
use secrecy::SecretString;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use toolyard_egress::{Mail, MailError, MailServer, MailTls, Mailer};

use crate::gateway::{Folder, Gateway, PATIENCE, fine};
use crate::yard::Yard;

const PASSWORD: &str = "canary-password";

struct PostOffice {
    _child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    ports: Value,
    folder: PathBuf,
}

impl PostOffice {
    async fn open(folder: &Path) -> Option<Self> {
        let python = crate::foreign::python()?;
        let folder = folder.join("post");
        std::fs::create_dir_all(&folder).unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/referees/post_office.py");
        let mut command = Command::new(python);
        command.arg(script).arg(&folder).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut office = Self { _child: child, lines, ports: Value::Null, folder };
        office.ports = office.next().await;
        Some(office)
    }

    /// The next letter.
    async fn next(&mut self) -> Value {
        let line = tokio::time::timeout(PATIENCE, self.lines.next_line()).await.expect("no letter comes");
        serde_json::from_str(&line.unwrap().expect("the post office is closed")).unwrap()
    }

    fn port(&self, way: &str) -> u16 {
        u16::try_from(self.ports[way].as_u64().unwrap()).unwrap()
    }

    /// Whether it says that it took a letter.
    fn holds(&self, holds: bool) {
        let file = self.folder.join("hold");
        if holds { std::fs::write(file, "").unwrap() } else { std::fs::remove_file(file).unwrap() }
    }

    /// A gateway that hands letters in here.
    async fn gateway(&self, folder: Folder, way: &str) -> Gateway {
        let (port, ca) = (self.port(way).to_string(), self.folder.join("ca.pem"));
        let env = [
            ("SSL_CERT_FILE", ca.to_str().unwrap()),
            ("TOOLYARD_SMTP_HOST", "localhost"),
            ("TOOLYARD_SMTP_PORT", &port),
            ("TOOLYARD_SMTP_TLS", way),
            ("TOOLYARD_SMTP_USER", "yard"),
            ("TOOLYARD_SMTP_PASSWORD", PASSWORD),
            ("TOOLYARD_SMTP_FROM", "Toolyard <yard@example.com>"),
        ];
        Gateway::start_with(folder, &env).await
    }
}

/// Ann's agent tells her something by mail.
async fn notify(gateway: Gateway) -> Yard {
    let yard = Yard::on(gateway).await;
    let config = json!({
        "agent": {"name": "assistant"}, "model": {"provider": "demo", "name": "demo"},
        "tools": [{"executionType": "prebuilt", "execution": {"action": "sendNotification", "channels": ["email"]}}]
    });
    yard.gateway.post("/api/agents", json!({"config": config})).await;
    let path = format!("/api/entities/{}", yard.ann);
    let known = json!({"metadata": {"email": "ann@example.org"}});
    fine(yard.gateway.secret(Method::PATCH, &path).json(&known)).await;
    let run = yard.say("call sendNotification {\"title\":\"Grüße\",\"message\":\"It is done\"}").await;
    yard.finish(&run).await;
    yard
}

#[tokio::test]
async fn g27_letters_go_out_encrypted_by_both_ways_and_with_a_password() {
    let folder = Folder::new();
    let Some(mut office) = PostOffice::open(folder.path()).await else { return };
    for way in ["tls", "starttls"] {
        let yard = notify(office.gateway(Folder::new(), way).await).await;
        let letter = office.next().await;
        assert_eq!((&letter["way"], &letter["encrypted"]), (&json!(way), &json!(true)), "{letter}");
        assert_eq!(letter["from"], "yard@example.com");
        assert_eq!(letter["to"], json!(["ann@example.org"]));
        assert_eq!(letter["text"], "It is done");
        assert!(!yard.gateway.log().contains(PASSWORD));
    }
}

#[tokio::test]
async fn d1_a_letter_that_a_kill_cuts_is_handed_in_again_with_its_id() {
    let folder = Folder::new();
    let Some(mut office) = PostOffice::open(folder.path()).await else { return };
    office.holds(true);
    let yard = notify(office.gateway(Folder::new(), "starttls").await).await;
    let first = office.next().await;
    assert_eq!(first["held"], true, "{first}");
    let data = yard.gateway.kill();
    office.holds(false);
    let _again = office.gateway(data, "starttls").await;
    let second = office.next().await;
    assert_eq!(second["held"], false, "{second}");
    assert!(first["id"].as_str().is_some_and(|id| id.ends_with("@example.com>")), "{first}");
    assert_eq!((&first["id"], &first["text"]), (&second["id"], &second["text"]));
}

#[tokio::test]
async fn a_mail_server_that_nobody_vouches_for_gets_no_letter_and_no_password() {
    let folder = Folder::new();
    let Some(mut office) = PostOffice::open(folder.path()).await else { return };
    let send = async |way: &str, password: &str| {
        let server = MailServer {
            host: "localhost".to_owned(),
            port: Some(office.port(way)),
            tls: if way == "tls" { MailTls::Tls } else { MailTls::StartTls },
            user: Some(("yard".to_owned(), SecretString::from(password.to_owned()))),
            from: "yard@example.com".to_owned(),
        };
        let mail = Mail { id: "1", to: "ann@example.org", subject: "s", text: "t" };
        Mailer::new(&server).unwrap().send(mail, Duration::from_secs(20)).await
    };
    for way in ["tls", "starttls"] {
        let error = send(way, PASSWORD).await.unwrap_err();
        assert!(matches!(error, MailError::Unreachable(_)) && !error.is_final(), "{error:?}");
    }
    // The first letter that it gets is the one of a gateway that knows it.
    let _yard = notify(office.gateway(Folder::new(), "tls").await).await;
    assert_eq!(office.next().await["text"], "It is done");
}
