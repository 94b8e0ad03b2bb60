//! As much HTTP/1.1 as a chat completion needs.

use std::io;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::reply::{Ending, Reply};
use super::{Desk, Seen};

const HEAD_BYTES: usize = 64 << 10;

/// Serves the requests of one connection.
pub(super) async fn converse(mut socket: TcpStream, desk: &Desk) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let mut buffer = Vec::new();
    while let Some(request) = read_request(&mut socket, &mut buffer).await? {
        let reply = desk.take(request);
        match reply.ending {
            Ending::Silent => return wait_for_hangup(&mut socket, desk).await,
            Ending::Whole => {
                write_head(&mut socket, &reply).await?;
                write_body(&mut socket, &reply, usize::MAX).await?;
                if reply.until_close {
                    return socket.shutdown().await;
                }
                socket.write_all(b"0\r\n\r\n").await?;
            }
            Ending::Cut(bytes) => {
                write_head(&mut socket, &reply).await?;
                write_body(&mut socket, &reply, bytes).await?;
                return socket.shutdown().await;
            }
            Ending::Hang(bytes) => {
                write_head(&mut socket, &reply).await?;
                write_body(&mut socket, &reply, bytes).await?;
                return wait_for_hangup(&mut socket, desk).await;
            }
        }
    }
    Ok(())
}

async fn wait_for_hangup(socket: &mut TcpStream, desk: &Desk) -> io::Result<()> {
    let mut rest = [0; 64];
    while let Ok(1..) = socket.read(&mut rest).await {}
    desk.hung_up();
    Ok(())
}

async fn write_head(socket: &mut TcpStream, reply: &Reply) -> io::Result<()> {
    let mut head = format!("HTTP/1.1 {} Scripted\r\n", reply.status);
    let framing = if reply.until_close { "connection: close" } else { "transfer-encoding: chunked" };
    for (name, value) in &reply.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(framing);
    head.push_str("\r\n\r\n");
    socket.write_all(head.as_bytes()).await
}

async fn write_body(socket: &mut TcpStream, reply: &Reply, mut left: usize) -> io::Result<()> {
    for bytes in &reply.writes {
        if left == 0 {
            return Ok(());
        }
        if !reply.pace.is_zero() {
            tokio::time::sleep(reply.pace).await;
        }
        let bytes = &bytes[..bytes.len().min(left)];
        left -= bytes.len();
        let size = if reply.one_byte { 1 } else { bytes.len().max(1) };
        for piece in bytes.chunks(size) {
            write_piece(socket, piece, reply.until_close).await?;
        }
    }
    Ok(())
}

async fn write_piece(socket: &mut TcpStream, piece: &[u8], bare: bool) -> io::Result<()> {
    if bare {
        return socket.write_all(piece).await;
    }
    let mut framed = format!("{:x}\r\n", piece.len()).into_bytes();
    framed.extend_from_slice(piece);
    framed.extend_from_slice(b"\r\n");
    socket.write_all(&framed).await
}

/// The next request, or `None` when the client is gone.
async fn read_request(socket: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<Option<Seen>> {
    let head_end = loop {
        if let Some(at) = buffer.windows(4).position(|w| w == b"\r\n\r\n") {
            break at;
        }
        if buffer.len() > HEAD_BYTES || socket.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    };
    let head = String::from_utf8_lossy(&buffer[..head_end]).into_owned();
    buffer.drain(..head_end + 4);
    let mut lines = head.lines();
    let mut words = lines.next().unwrap_or_default().split(' ').map(str::to_owned);
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length.and_then(|(_, value)| value.parse().ok()).unwrap_or(0);
    while buffer.len() < length {
        if socket.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    }
    let rest = buffer.split_off(length);
    let body = std::mem::replace(buffer, rest);
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    Ok(Some(Seen { method, path, headers, body }))
}
