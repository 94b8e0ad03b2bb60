//! Letters, handed in to a mail server of a few lines.

use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use toolyard_egress::{Mail, MailError, MailServer, MailTls, Mailer};

const TOTAL: Duration = Duration::from_secs(10);

/// Takes one letter; `refusal` answers the recipient instead of a yes. The task's
/// value is all that it heard.
async fn server(refusal: Option<&'static str>) -> (u16, JoinSet<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let (socket, _) = listener.accept().await.unwrap();
        let (read, mut write) = socket.into_split();
        let mut lines = BufReader::new(read).lines();
        let (mut heard, mut letter) = (String::new(), false);
        write.write_all(b"220 hello\r\n").await.unwrap();
        while let Ok(Some(line)) = lines.next_line().await {
            heard.push_str(&line);
            heard.push('\n');
            let answer = match line.get(..4) {
                _ if letter && line != "." => continue,
                _ if letter => {
                    letter = false;
                    "250 taken"
                }
                Some("RCPT") => refusal.unwrap_or("250 fine"),
                Some("DATA") => {
                    letter = true;
                    "354 go on"
                }
                Some("QUIT") => break,
                _ => "250 fine",
            };
            if write.write_all(format!("{answer}\r\n").as_bytes()).await.is_err() {
                break;
            }
        }
        heard
    });
    (port, tasks)
}

fn mailer(port: u16) -> Mailer {
    Mailer::new(&MailServer {
        host: "127.0.0.1".to_owned(),
        port: Some(port),
        tls: MailTls::None,
        user: None,
        from: "Toolyard <yard@example.com>".to_owned(),
    })
    .unwrap()
}

fn letter(to: &'static str) -> Mail<'static> {
    Mail { id: "run_1:5", to, subject: "Hello\r\nBcc: evil@example.com", text: "A run waits.\n.\nEnd" }
}

#[tokio::test]
async fn a_letter_is_handed_in_whole_and_its_subject_adds_no_reader() {
    let (port, mut tasks) = server(None).await;
    mailer(port).send(letter("ada@example.org"), TOTAL).await.unwrap();
    let heard = tasks.join_next().await.unwrap().unwrap();
    for line in [
        "MAIL FROM:<yard@example.com>",
        "RCPT TO:<ada@example.org>",
        "Subject: HelloBcc: evil@example.com",
        "Message-ID: <run.1.5@example.com>",
        "A run waits.",
        "End",
    ] {
        assert!(heard.contains(line), "{line}: {heard}");
    }
    assert_eq!(heard.matches("RCPT TO").count(), 1);
    assert!(!heard.lines().any(|line| line.starts_with("Bcc")), "{heard}");
}

#[tokio::test]
async fn a_refusal_says_whether_another_try_may_help() {
    for (answer, is_final) in [("550 no such user", true), ("451 later", false)] {
        let (port, _tasks) = server(Some(answer)).await;
        let error = mailer(port).send(letter("ada@example.org"), TOTAL).await.unwrap_err();
        assert_eq!(error.is_final(), is_final, "{error:?}");
        assert!(error.to_string().contains(&answer[..3]), "{error}");
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = mailer(listener.local_addr().unwrap().port());
    let error = silent.send(letter("ada@example.org"), Duration::from_millis(60)).await.unwrap_err();
    assert!(matches!(error, MailError::Timeout { .. }), "{error:?}");
    let error = silent.send(letter("ada@example.org\r\nRCPT TO:<evil@x.y>"), TOTAL).await.unwrap_err();
    assert!(matches!(error, MailError::Refused(_)), "{error:?}");
    drop(listener);
    let error = silent.send(letter("ada@example.org"), TOTAL).await.unwrap_err();
    assert!(!error.is_final(), "{error:?}");
}

#[tokio::test]
async fn a_server_without_starttls_gets_nothing_in_clear() {
    let (port, mut tasks) = server(None).await;
    let secret = secrecy::SecretString::from("canary-password");
    let careful = Mailer::new(&MailServer {
        host: "127.0.0.1".to_owned(),
        port: Some(port),
        tls: MailTls::StartTls,
        user: Some(("yard".to_owned(), secret)),
        from: "yard@example.com".to_owned(),
    })
    .unwrap();
    let error = careful.send(letter("ada@example.org"), TOTAL).await.unwrap_err();
    assert!(matches!(error, MailError::Unreachable(_)), "{error:?}");
    drop(careful);
    let heard = tasks.join_next().await.unwrap().unwrap();
    assert!(!heard.contains("MAIL FROM") && !heard.contains("AUTH"), "{heard}");
}
