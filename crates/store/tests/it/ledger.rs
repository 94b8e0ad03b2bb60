//! The ledger follows the log (invariant 1), and clients may say "mine".

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use toolyard_protocol::tool::Visibility;
use toolyard_protocol::wait::{AnswerRule, LedgerChange, Wait, WaitKind};
use toolyard_protocol::{CallId, ClientId, Event, SpaceId, WaitId, limits};
use toolyard_store::runs;
use toolyard_store::waits::{self, WaitRow};

use crate::cast::{self, owner};
use crate::home::{Home, tx};
use crate::line::{Line, Waking};
use crate::world::with_space;

/// Every event that opens a wait, with the event that ends it.
pub(crate) async fn waits_open_and_end_with_their_events(home: &Home) {
    let node = owner("a");
    let line = Line::running(home, None, &node).await;
    let [client, approval, child] = [CallId::mint(), CallId::mint(), CallId::mint()];
    let gateway = CallId::mint();
    let events = vec![
        cast::client_call(&client),
        cast::asked(&approval, 0),
        cast::child_started(&child),
        cast::requested(&gateway, None, None),
    ];
    line.append(&node, 1, 2, events, cast::going_on()).await.unwrap();
    let open = |rows: &[WaitRow]| {
        rows.iter().map(|r| (r.wait.kind, r.wait.call.clone(), r.opened_seq)).collect::<Vec<_>>()
    };
    assert_eq!(
        open(&line.open_waits().await),
        [
            (WaitKind::Client, client.clone(), 3),
            (WaitKind::Approval, approval.clone(), 4),
            (WaitKind::Child, child.clone(), 5)
        ],
        "a call that runs here opens no wait"
    );

    line.fact(vec![cast::answered(&approval, 0)], Waking::No).await;
    line.fact(vec![cast::returned(&client, json!(1))], Waking::No).await;
    assert_eq!(open(&line.open_waits().await), [(WaitKind::Child, child.clone(), 5)]);
    line.fact(vec![cast::returned(&child, json!(2))], Waking::No).await;
    assert_eq!(line.open_waits().await, []);
    let ended: Vec<Option<i64>> = line.waits().await.iter().map(|r| r.ended_seq).collect();
    assert_eq!(ended, [Some(8), Some(7), Some(9)], "in the order they opened");
}

pub(crate) async fn a_wait_keeps_what_its_event_said(home: &Home) {
    let (node, (tenant, space)) = (owner("a"), with_space(home).await);
    let line = Line::running(home, Some(&space), &node).await;
    let (call, prompt) = (CallId::mint(), CallId::mint());
    let expires = Some(line.row().await.created_at.plus_millis(86_400_000));
    let events = vec![cast::requested(&call, Some(WaitKind::Client), expires), cast::asked(&prompt, 2)];
    let done = line.append(&node, 1, 2, events, cast::going_on()).await.unwrap();
    let wait = |kind, call: &CallId, round| Wait {
        run: line.run.id.clone(),
        root: line.run.root.clone(),
        id: WaitId::of(kind, call, round),
        kind,
        call: call.clone(),
        tool: cast::tool(),
        visibility: Visibility::Public,
        rule: AnswerRule::Members {},
        opened_at: done.at,
        expires_at: expires,
        claim: None,
        payload: json!({ "slept": 5 }),
    };
    let row = |wait, opened_seq| WaitRow {
        tenant: tenant.clone(),
        space: Some(space.clone()),
        wait,
        opened_seq,
        ended_seq: None,
    };
    let first = row(wait(WaitKind::Client, &call, 0), 3);
    let second = row(
        Wait {
            visibility: Visibility::Private,
            rule: AnswerRule::Admin {},
            expires_at: None,
            // A prompt is read from the log, not copied.
            payload: Value::Null,
            ..wait(WaitKind::Approval, &prompt, 2)
        },
        4,
    );
    assert_eq!(line.waits().await, [first.clone(), second.clone()]);
    let id = first.wait.id.clone();
    let found = tx!(home, read, [tenant, id], |tx| waits::find(tx, &tenant, &id).await);
    assert_eq!(found, Some(first));
}

pub(crate) async fn a_returned_call_ends_all_its_waits(home: &Home) {
    let node = owner("a");
    let line = Line::running(home, None, &node).await;
    let (call, neighbour) = (CallId::mint(), CallId::mint());
    let events = vec![cast::asked(&call, 0), cast::client_call(&call), cast::client_call(&neighbour)];
    line.append(&node, 1, 2, events, cast::going_on()).await.unwrap();
    line.fact(vec![cast::returned(&call, json!(1))], Waking::No).await;
    let open: Vec<CallId> = line.open_waits().await.into_iter().map(|r| r.wait.call).collect();
    assert_eq!(open, [neighbour]);
}

/// Invariant 1 and Inv-D: whatever happens, the open rows are what a fold of
/// the log by [`LedgerChange`] says.
pub(crate) async fn the_open_set_is_a_projection_of_the_log(home: &Home) {
    for seed in 1..=12 {
        let node = owner("a");
        let line = Line::running(home, None, &node).await;
        let mut dice = Dice(seed);
        let calls: Vec<CallId> = (0..6).map(|_| CallId::mint()).collect();
        let mut rounds: BTreeMap<usize, u32> = BTreeMap::new();
        let mut opened: BTreeSet<WaitId> = BTreeSet::new();
        let mut seq = 2;
        for _ in 0..25 {
            let i = dice.roll(calls.len());
            let call = &calls[i];
            let round = rounds.entry(i).or_default();
            let event = match dice.roll(6) {
                0 => cast::client_call(call),
                1 => {
                    *round += 1;
                    cast::asked(call, *round)
                }
                2 => cast::answered(call, *round),
                3 => cast::child_started(call),
                4 => cast::returned(call, json!(seq)),
                _ => cast::news(),
            };
            // The engine opens a wait once; here the dice might say it twice.
            if let Some(LedgerChange::Open(new)) = LedgerChange::of(&event)
                && !opened.insert(new.id)
            {
                continue;
            }
            if dice.roll(2) == 0 {
                line.append(&node, 1, seq, vec![event], cast::going_on()).await.unwrap();
            } else {
                line.fact(vec![event], Waking::No).await;
            }
            seq += 1;
        }
        let log = line.log().await;
        let events: Vec<Event> = log.into_iter().map(|l| l.event).collect();
        let open: BTreeSet<WaitId> = line.open_waits().await.into_iter().map(|r| r.wait.id).collect();
        assert_eq!(open, projection(&events), "seed {seed}");
    }
}

fn projection(events: &[Event]) -> BTreeSet<WaitId> {
    let mut open: BTreeMap<WaitId, CallId> = BTreeMap::new();
    for change in events.iter().filter_map(LedgerChange::of) {
        match change {
            LedgerChange::Open(new) => {
                open.insert(new.id, new.call);
            }
            LedgerChange::End(wait) => {
                open.remove(&wait);
            }
            LedgerChange::EndCall(call) => open.retain(|_, of| *of != call),
        }
    }
    open.into_keys().collect()
}

/// A small generator of numbers (xorshift): the seed names the whole story.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(sides).unwrap()).unwrap()
    }
}

pub(crate) async fn a_claim_holds_off_other_clients_until_it_lapses(home: &Home) {
    let (line, call) = Line::parked(home, None, &owner("a")).await;
    let wait = WaitId::of(WaitKind::Client, &call, 0);
    let [tab, robot] = ["tab", "robot"].map(|c| ClientId::parse(c).unwrap());
    // A claim by a client that lasts so many milliseconds from now.
    let claim = async |client: &ClientId, ms: u64| {
        let (tenant, run) = (line.run.tenant.clone(), line.run.id.clone());
        tx!(home, write, [tenant, run, wait, client], |tx| {
            let until = tx.now().await?.plus_millis(ms);
            Ok((waits::claim(tx, &tenant, &run, &wait, &client, until).await?, until))
        })
    };
    let minute = limits::CLAIM_SECONDS * 1000;
    let (first, until) = claim(&tab, minute).await;
    assert!(first);
    assert_eq!(
        line.waits().await[0].wait.claim,
        Some((tab.clone(), until)),
        "the ledger says who and until when"
    );
    assert!(!claim(&robot, minute).await.0, "another client is refused");
    let (renewed, later) = claim(&tab, 2 * minute).await;
    assert!(renewed, "the same client renews");
    assert_eq!(line.waits().await[0].wait.claim, Some((tab.clone(), later)));
    // Given up: it lapses at once.
    assert!(claim(&tab, 0).await.0);
    assert!(claim(&robot, minute).await.0);
    assert!(!claim(&tab, minute).await.0);

    line.fact(vec![cast::returned(&call, json!(1))], Waking::No).await;
    assert!(!claim(&robot, minute).await.0, "an ended wait is nobody's to claim");
}

pub(crate) async fn due_waits_are_found_by_the_databases_time(home: &Home) {
    let node = owner("a");
    let line = Line::running(home, None, &node).await;
    let now = tx!(home, write, [], |tx| tx.now().await);
    let [overdue, just, later, never] = [(); 4].map(|()| CallId::mint());
    let events = vec![
        cast::requested(&just, Some(WaitKind::Timer), Some(now)),
        cast::requested(&later, Some(WaitKind::Client), Some(now.plus_millis(3_600_000))),
        cast::requested(
            &overdue,
            Some(WaitKind::Client),
            Some(toolyard_protocol::Timestamp::from_millis(now.millis() - 9_000)),
        ),
        cast::requested(&never, Some(WaitKind::Client), None),
    ];
    line.append(&node, 1, 2, events, cast::going_on()).await.unwrap();
    let due = async |limit: u32| {
        let rows = tx!(home, read, [], |tx| waits::due(tx, limit).await);
        rows.into_iter().map(|r| r.wait.call).collect::<Vec<_>>()
    };
    assert_eq!(due(10).await, [overdue.clone(), just.clone()]);
    assert_eq!(due(1).await, std::slice::from_ref(&overdue));
    let next = tx!(home, read, [], |tx| waits::next_due(tx).await);
    assert_eq!(next.unwrap().millis(), now.millis() - 9_000);

    for call in [&overdue, &just] {
        line.fact(vec![cast::returned(call, json!(null))], Waking::No).await;
    }
    assert_eq!(due(10).await, []);
    let next = tx!(home, read, [], |tx| waits::next_due(tx).await);
    assert_eq!(next, Some(now.plus_millis(3_600_000)));
    line.fact(vec![cast::returned(&later, json!(null))], Waking::No).await;
    let next = tx!(home, read, [], |tx| waits::next_due(tx).await);
    assert_eq!(next, None, "a wait without a moment is never due");
}

pub(crate) async fn open_waits_are_listed_by_run_space_and_kind(home: &Home) {
    let (node, (tenant, space)) = (owner("a"), with_space(home).await);
    let (here, _) = Line::parked(home, Some(&space), &node).await;
    let (elsewhere, ended) = Line::parked(home, None, &node).await;
    let asking = CallId::mint();
    let events = vec![cast::returned(&ended, json!(1)), cast::asked(&asking, 0)];
    elsewhere.fact(events, Waking::No).await;

    let of = |line: &Line| line.run.id.clone();
    let (a, b) = (of(&here), of(&elsewhere));
    let list = async |run: Option<&toolyard_protocol::RunId>, space: Option<&SpaceId>, kind, limit| {
        let (run, space) = (run.cloned(), space.cloned());
        let rows = tx!(home, read, [tenant, run, space], |tx| waits::list_open(
            tx,
            &tenant,
            run.as_ref(),
            space.as_ref(),
            kind,
            None,
            limit
        )
        .await);
        rows.into_iter().map(|r| r.wait.run).collect::<Vec<_>>()
    };
    let mut all = list(None, None, None, 10).await;
    all.sort();
    assert_eq!(all, [a.clone(), b.clone()]);
    assert_eq!(list(None, None, None, 1).await.len(), 1);
    assert_eq!(list(Some(&b), None, None, 10).await, std::slice::from_ref(&b));
    assert_eq!(list(None, Some(&space), None, 10).await, std::slice::from_ref(&a));
    let approvals = list(None, None, Some(WaitKind::Approval), 10).await;
    assert_eq!(approvals, [b]);
    let none = list(Some(&a), None, Some(WaitKind::Approval), 10).await;
    assert_eq!(none, []);
}

/// A run that cannot be folded any more ends without saying how its calls ended.
pub(crate) async fn all_waits_of_a_run_close_at_once(home: &Home) {
    let node = owner("a");
    let (line, _) = Line::parked(home, None, &node).await;
    let (neighbour, _) = Line::parked(home, None, &node).await;
    let (tenant, run) = (line.run.tenant.clone(), line.run.id.clone());
    tx!(home, write, [tenant, run], |tx| {
        let row = runs::lock(tx, &tenant, &run).await?.unwrap();
        waits::close_all(tx, &row).await
    });
    assert_eq!(line.open_waits().await, []);
    assert_eq!(line.waits().await[0].ended_seq, Some(6), "by the event that follows");
    assert_eq!(neighbour.open_waits().await.len(), 1);
}

/// A wait of a child's run is answered under its root.
pub(crate) async fn waits_name_the_root_of_their_tree(home: &Home) {
    let (node, tenant) = (owner("a"), cast::tenant());
    let parent = Line::running(home, None, &node).await;
    let mut child = cast::new_run(&tenant, None);
    child.root = parent.run.id.clone();
    child.parent = Some(parent.run.id.clone());
    let child = Line::begun(home, child, Some(&node)).await;
    let call = CallId::mint();
    child.append(&node, 1, 0, vec![cast::client_call(&call)], cast::parked()).await.unwrap();
    let wait = child.open_waits().await.remove(0).wait;
    assert_eq!((wait.run, wait.root), (child.run.id.clone(), parent.run.id.clone()));
    let row = child.row().await;
    assert_eq!(row.parent, Some(parent.run.id.clone()));
    let run = child.run.id.clone();
    let locked = tx!(home, write, [tenant, run], |tx| runs::lock(tx, &tenant, &run).await);
    assert_eq!(locked, Some(row));
}
