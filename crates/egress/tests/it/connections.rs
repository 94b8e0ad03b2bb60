//! What the door says about a connection, and what it leaves behind.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use toolyard_egress::{Answer, Door, EgressError, Letter, Patience, Target, Verb};

const PATIENCE: Patience =
    Patience { head: Duration::from_secs(10), idle: Duration::from_secs(10), bytes: 1 << 20 };

async fn post(door: &Door, target: &Target) -> Result<Answer, EgressError> {
    let body = Some(Bytes::from_static(b"{}"));
    let letter = Letter { verb: Verb::Post, target, headers: &[], accept: "*/*", body, patience: PATIENCE };
    door.send(letter).await
}

async fn listen() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/secret-path", listener.local_addr().unwrap());
    (listener, url)
}

/// Reads one request with the body `{}`.
async fn take(socket: &mut TcpStream) {
    let mut request = Vec::new();
    while !request.ends_with(b"{}") {
        assert_ne!(socket.read_buf(&mut request).await.unwrap(), 0);
    }
}

#[tokio::test]
async fn a_refused_port_means_never_sent() {
    let (listener, url) = listen().await;
    drop(listener);
    let error = post(&Door::operator().unwrap(), &Target::parse(&url).unwrap()).await.unwrap_err();
    assert!(matches!(error, EgressError::Unreachable(_)) && error.never_sent(), "{error:?}");
}

#[tokio::test]
async fn a_connection_that_closes_without_an_answer_may_have_been_heard() {
    let (listener, url) = listen().await;
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { take(&mut listener.accept().await.unwrap().0).await });
    let error = post(&Door::operator().unwrap(), &Target::parse(&url).unwrap()).await.unwrap_err();
    assert!(matches!(error, EgressError::Unreachable(_)) && !error.never_sent(), "{error:?}");
    let told = format!("{error} {error:?} {}", error.causes());
    assert!(!told.contains("secret"), "{told}");
}

#[tokio::test]
async fn a_body_that_is_cut_off_is_broken() {
    let (listener, url) = listen().await;
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        take(&mut socket).await;
        socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nsecret").await.unwrap();
    });
    let mut answer = post(&Door::operator().unwrap(), &Target::parse(&url).unwrap()).await.unwrap();
    let error = answer.body.read_all().await.unwrap_err();
    assert!(matches!(error, EgressError::Broken(_)) && !error.never_sent(), "{error:?}");
    let told = format!("{error} {error:?} {}", error.causes());
    assert!(!told.contains("secret"), "{told}");
}

/// Trailers end an answer like any other: a later request comes over the same
/// connection, which goes back a moment after the last byte.
#[tokio::test]
async fn trailers_are_passed_over_and_a_connection_is_used_again() {
    let (listener, url) = listen().await;
    let again = Arc::new(Notify::new());
    let (mut tasks, told) = (JoinSet::new(), again.clone());
    tasks.spawn(async move {
        let mut lines = JoinSet::new();
        while let Ok((mut socket, _)) = listener.accept().await {
            let told = told.clone();
            lines.spawn(async move {
                for nth in 1.. {
                    take(&mut socket).await;
                    let answer = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x-sum\r\n\r\n\
                                  5\r\nhello\r\n0\r\nx-sum: 7\r\n\r\n";
                    socket.write_all(answer.as_bytes()).await.unwrap();
                    if nth == 2 {
                        told.notify_one();
                    }
                }
            });
        }
    });
    let (door, target) = (Door::operator().unwrap(), Target::parse(&url).unwrap());
    let asking = async {
        loop {
            let mut answer = post(&door, &target).await.unwrap();
            assert_eq!(answer.body.read_all().await.unwrap(), b"hello");
            assert_eq!(answer.body.next().await.unwrap(), None);
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        () = asking => {}
        () = again.notified() => {}
        () = tokio::time::sleep(Duration::from_secs(10)) => panic!("no connection was used again"),
    }
}

#[tokio::test]
async fn a_body_that_is_dropped_closes_its_connection() {
    let (listener, url) = listen().await;
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        take(&mut socket).await;
        socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhello").await.unwrap();
        socket.read(&mut [0]).await
    });
    let door = Door::operator().unwrap();
    let mut answer = post(&door, &Target::parse(&url).unwrap()).await.unwrap();
    assert_eq!(answer.body.next().await.unwrap().as_deref(), Some(&b"hello"[..]));
    drop(answer);
    let read = tokio::time::timeout(Duration::from_secs(10), tasks.join_next()).await.unwrap();
    assert!(matches!(read, Some(Ok(Ok(0) | Err(_)))), "{read:?}");
}
