//! Where deliveries go: a mail server on this machine. It takes every letter.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

#[path = "../it/far_side.rs"]
#[allow(dead_code, reason = "this one never refuses")]
mod far_side;

pub(crate) use far_side::FarSide;

/// A letter as it was handed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Letter {
    pub(crate) id: String,
    pub(crate) text: String,
}

pub(crate) struct PostOffice {
    pub(crate) port: u16,
    letters: Arc<Mutex<Vec<Letter>>>,
    _task: tokio::task::JoinSet<()>,
}

impl PostOffice {
    pub(crate) async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let letters: Arc<Mutex<Vec<Letter>>> = Arc::default();
        let mut task = tokio::task::JoinSet::new();
        let kept = letters.clone();
        task.spawn(async move {
            let mut desks = tokio::task::JoinSet::new();
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                let kept = kept.clone();
                desks.spawn(async move {
                    // Who dies in the middle of a sentence hands nothing in.
                    let _ = serve(socket, &kept).await;
                });
            }
        });
        Self { port, letters, _task: task }
    }

    pub(crate) fn letters(&self) -> Vec<Letter> {
        self.letters.lock().unwrap().clone()
    }
}

async fn serve(socket: TcpStream, kept: &Mutex<Vec<Letter>>) -> std::io::Result<()> {
    let (read, mut write) = socket.into_split();
    let mut lines = BufReader::new(read).lines();
    write.write_all(b"220 here\r\n").await?;
    while let Some(line) = lines.next_line().await? {
        let answer = match line.split([' ', ':']).next().unwrap_or_default().to_ascii_uppercase().as_str() {
            "DATA" => {
                write.write_all(b"354 go on\r\n").await?;
                let mut letter = Vec::new();
                while let Some(line) = lines.next_line().await?.filter(|line| line != ".") {
                    letter.push(line);
                }
                kept.lock().unwrap().push(read_letter(&letter));
                "250 taken\r\n"
            }
            "QUIT" => return write.write_all(b"221 bye\r\n").await,
            _ => "250 fine\r\n",
        };
        write.write_all(answer.as_bytes()).await?;
    }
    Ok(())
}

fn read_letter(lines: &[String]) -> Letter {
    let id = lines.iter().find_map(|line| line.strip_prefix("Message-ID: ")).unwrap_or_default();
    let text =
        lines.iter().skip_while(|line| !line.is_empty()).skip(1).cloned().collect::<Vec<_>>().join("\n");
    Letter { id: id.to_owned(), text }
}
