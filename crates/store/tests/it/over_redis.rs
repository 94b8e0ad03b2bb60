//! Nodes that tell each other by Redis: pieces before their commit, news after
//! it, and PostgreSQL's notifications whenever Redis is away.

use std::time::{Duration, Instant};

use tokio::time::timeout;
use toolyard_protocol::delta::{Delta, Piece};
use toolyard_protocol::{RunId, SpaceId};
use toolyard_store::{Joined, RedisUrl, Store};

use crate::cast::{self, owner};
use crate::home::{Home, tell_on_postgres};
use crate::line::{Line, Waking};
use crate::redis_server::RedisServer;

const PATIENCE: Duration = Duration::from_secs(30);

async fn until(what: &str, fact: impl Fn() -> bool) {
    let began = Instant::now();
    while !fact() {
        assert!(began.elapsed() < PATIENCE, "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn is_up(store: &Store) -> bool {
    store.feed().link().is_some_and(|link| link.up)
}

async fn go(store: &Store, redis: &RedisServer) {
    store.go_by_redis(RedisUrl::parse(&redis.url()).unwrap()).await.unwrap();
}

async fn other_node(home: &Home, redis: &RedisServer) -> Store {
    let other = Store::open(&home.settings).await.unwrap();
    go(&other, redis).await;
    until("Redis is reached", || is_up(&other) && is_up(&home.store)).await;
    other
}

fn text(run: &RunId, step: u32, attempt: u32, offset: u32, text: &str) -> Delta {
    let piece = Piece::TextDelta { part: 0, text: text.into() };
    Delta { run: run.clone(), step, attempt, offset, piece }
}

/// What a reader has: the step so far, then piece by piece, joining again
/// whenever it is told to.
struct Reader<'s> {
    store: &'s Store,
    run: RunId,
    joined: Joined,
    next: u32,
    text: String,
}

impl<'s> Reader<'s> {
    fn new(store: &'s Store, run: &RunId) -> Self {
        let joined = store.feed().join_run(run);
        let mut reader = Self { store, run: run.clone(), joined, next: 0, text: String::new() };
        reader.so_far();
        reader
    }
    fn so_far(&mut self) {
        for step in &self.joined.so_far {
            self.next = step.next;
            self.text = step.pieces().map(|piece| said(&piece).to_owned()).collect();
        }
    }
    /// Reads until this was said.
    async fn until(&mut self, wanted: &str) {
        let reading = async {
            while self.text != wanted {
                match self.joined.deltas.recv().await {
                    Ok(deltas) => {
                        for delta in deltas.iter() {
                            assert_eq!(delta.offset, self.next, "without a gap, after {:?}", self.text);
                            self.next += 1;
                            self.text.push_str(said(&delta.piece));
                        }
                    }
                    Err(_) => {
                        self.joined = self.store.feed().join_run(&self.run);
                        self.so_far();
                    }
                }
            }
        };
        let done = timeout(PATIENCE, reading).await;
        assert!(done.is_ok(), "{:?} instead of {wanted:?}", self.text);
    }
}

fn said(piece: &Piece) -> &str {
    match piece {
        Piece::TextDelta { text, .. } => text,
        _ => "",
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_on_another_node_get_every_piece_and_what_came_before() {
    tell_on_postgres(async |home: Home| {
        let redis = RedisServer::start();
        go(&home.store, &redis).await;
        let other = other_node(&home, &redis).await;
        let (run, space) = (RunId::mint(), SpaceId::mint());
        let feed = home.store.feed();
        feed.deltas(Some(&space), vec![text(&run, 1, 1, 0, "one "), text(&run, 1, 1, 1, "two ")]);

        // It joins in the middle: the node over there is asked.
        let mut early = Reader::new(&other, &run);
        early.until("one two ").await;
        feed.deltas(Some(&space), vec![text(&run, 1, 1, 2, "three ")]);
        early.until("one two three ").await;
        // The next one finds it here.
        assert_eq!(Reader::new(&other, &run).text, "one two three ");
        let of_space = other.feed().join_space(&space);
        until("the space is heard", || {
            let so_far = &other.feed().join_space(&space).so_far;
            so_far.first().is_some_and(|step| (step.next, &step.run) == (3, &run))
        })
        .await;

        // The next attempt starts over, and pieces of the old one are void.
        feed.deltas(Some(&space), vec![text(&run, 1, 2, 0, "anew ")]);
        feed.deltas(Some(&space), vec![text(&run, 1, 1, 3, "late ")]);
        feed.deltas(Some(&space), vec![text(&run, 1, 2, 0, "anew "), text(&run, 1, 2, 1, "again")]);
        until("the attempt is heard", || {
            let so_far = &other.feed().join_run(&run).so_far;
            so_far.first().is_some_and(|step| (step.attempt, step.next) == (2, 2))
        })
        .await;

        // Its worker stops: nobody over there must see half a step.
        feed.forget(&run, Some(&space));
        until("the step is forgotten", || other.feed().join_run(&run).so_far.is_empty()).await;
        drop((early, of_space));
        assert!(other.feed().is_empty());
        other.close().await;
        home
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d13_commits_are_heard_with_redis_and_without() {
    tell_on_postgres(async |home: Home| {
        // It is away at the start, then there, then killed, then there again.
        let mut redis = RedisServer::absent();
        go(&home.store, &redis).await;
        let other = Store::open(&home.settings).await.unwrap();
        go(&other, &redis).await;
        let line = Line::running(&home, None, &owner("a")).await;
        let mut ear = other.feed().watch_run(&line.run.id);
        // What is told in the moment of a change may be lost: a reader finds it by looking.
        let mut hear = async |what: &str| {
            let heard = async {
                loop {
                    let done = line.fact(vec![cast::news()], Waking::No).await;
                    let news = timeout(Duration::from_millis(300), ear.committed.changed()).await;
                    if news.is_ok() && ear.committed.borrow_and_update().seq == done.seq {
                        break;
                    }
                }
            };
            timeout(PATIENCE, heard).await.expect(what);
        };
        hear("while Redis was never there").await;
        assert!(!is_up(&other) && !other.feed().may_rest(Instant::now()));
        for round in 0..2 {
            redis.restart();
            until("Redis is found", || is_up(&home.store) && is_up(&other)).await;
            hear("by Redis").await;
            if round == 0 {
                // The way was tried, so readers need not look all the time.
                until("nothing is in doubt", || other.feed().may_rest(Instant::now())).await;
            }
            redis.kill();
            until("its end is noticed", || !is_up(&home.store) && !is_up(&other)).await;
            assert!(!other.feed().may_rest(Instant::now()));
            hear("by PostgreSQL again").await;
        }
        drop(ear);
        other.close().await;
        drop(line);
        home
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d13_a_redis_that_hangs_is_given_up_and_a_node_that_cannot_reach_it_says_so() {
    tell_on_postgres(async |home: Home| {
        let (redis, absent) = (RedisServer::start(), RedisServer::absent());
        go(&home.store, &redis).await;
        until("Redis is reached", || is_up(&home.store)).await;
        until("the notifications are there", || home.store.feed().may_rest(Instant::now())).await;
        // A second node does not reach it: the first one must not rely on it.
        let other = Store::open(&home.settings).await.unwrap();
        go(&other, &absent).await;
        until("the first node is told", || !home.store.feed().may_rest(Instant::now())).await;
        let line = Line::running(&home, None, &owner("a")).await;
        let mut ear = other.feed().watch_run(&line.run.id);
        let heard = async {
            loop {
                let done = line.fact(vec![cast::news()], Waking::No).await;
                let news = timeout(Duration::from_millis(300), ear.committed.changed()).await;
                if news.is_ok() && ear.committed.borrow_and_update().seq == done.seq {
                    break;
                }
            }
        };
        timeout(PATIENCE, heard).await.expect("the deaf node hears by PostgreSQL");
        assert!(is_up(&home.store));
        redis.signal("STOP");
        until("it is given up", || !is_up(&home.store)).await;
        redis.signal("CONT");
        until("it is found again", || is_up(&home.store)).await;
        drop(ear);
        other.close().await;
        drop(line);
        home
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gap_in_the_pieces_is_asked_for() {
    tell_on_postgres(async |home: Home| {
        let mut redis = RedisServer::start();
        go(&home.store, &redis).await;
        let other = other_node(&home, &redis).await;
        let (run, feed) = (RunId::mint(), home.store.feed());
        let mut reader = Reader::new(&other, &run);
        feed.deltas(None, vec![text(&run, 1, 1, 0, "a")]);
        reader.until("a").await;
        redis.kill();
        until("its end is noticed", || !is_up(&home.store) && !is_up(&other)).await;
        feed.deltas(None, vec![text(&run, 1, 1, 1, "b")]);
        redis.restart();
        until("Redis is found", || is_up(&home.store) && is_up(&other)).await;
        feed.deltas(None, vec![text(&run, 1, 1, 2, "c")]);
        reader.until("abc").await;
        assert_eq!(Reader::new(&other, &run).text, "abc");
        drop(reader);
        assert!(other.feed().is_empty());
        other.close().await;
        home
    })
    .await;
}
