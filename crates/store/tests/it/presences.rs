//! Connected programs: who is there, what is offered, what is counted.

use serde_json::json;
use toolyard_protocol::wait::WaitKind;
use toolyard_protocol::{
    AgentName, ClientId, ConnectionId, EntityId, TenantId, Timestamp, ToolName, WaitId, limits,
};
use toolyard_store::presences::{self, Presence};
use toolyard_store::runs::Owner;
use toolyard_store::tool_uses::{self, ToolUse};
use toolyard_store::waits::{self, Claim, Offerable};
use toolyard_store::{CallNews, nodes};

use crate::cast::{self, owner};
use crate::home::{Home, tx};
use crate::line::{Line, Waking};

/// As long as a story takes on a busy machine.
const LONG: u64 = 600_000;

fn presence(client: &str, entity: Option<&EntityId>, tools: &[&ToolName]) -> Presence {
    Presence {
        connection: ConnectionId::mint(),
        client: ClientId::parse(client).unwrap(),
        entity: entity.cloned(),
        tools: tools.iter().copied().cloned().collect(),
    }
}

fn named(tool: &str) -> ToolName {
    ToolName::parse(tool).unwrap()
}

async fn live(home: &Home, node: &Owner) {
    tx!(home, write, [node], |tx| nodes::beat(tx, &node, LONG).await);
}

async fn enter(home: &Home, tenant: &TenantId, node: &Owner, presence: &Presence) {
    tx!(home, write, [tenant, node, presence], |tx| presences::enter(tx, &tenant, &node, &presence).await);
}

async fn holders(home: &Home, tenant: &TenantId, tool: &ToolName) -> Vec<String> {
    let rows = tx!(home, read, [tenant, tool], |tx| presences::holders(tx, &tenant, &tool).await);
    let mut names: Vec<_> = rows.into_iter().map(|holder| holder.client.to_string()).collect();
    names.sort();
    names
}

pub(crate) async fn a_program_is_there_while_its_connection_and_its_node_are(home: &Home) {
    let (tenant, tool, other) = (cast::tenant(), named("look"), named("jump"));
    let stranger = TenantId::parse("stranger").unwrap();
    let (near, far) = (owner("near"), owner("far"));
    live(home, &near).await;
    live(home, &far).await;
    let [one, two] =
        [("one", &near), ("two", &far)].map(|(client, node)| (presence(client, None, &[&tool]), node));
    for (presence, node) in [&one, &two] {
        enter(home, &tenant, node, presence).await;
    }
    assert_eq!(holders(home, &tenant, &tool).await, ["one", "two"]);
    assert!(holders(home, &tenant, &other).await.is_empty());
    assert!(holders(home, &stranger, &tool).await.is_empty());
    // It connects again, with other tools: the first connection counts no more.
    let again = presence("one", None, &[&other]);
    enter(home, &tenant, &near, &again).await;
    assert_eq!(holders(home, &tenant, &tool).await, ["two"]);
    assert_eq!(holders(home, &tenant, &other).await, ["one"]);
    // The far node is gone, and its programs with it.
    tx!(home, write, [far], |tx| nodes::leave(tx, &far).await);
    assert!(holders(home, &tenant, &tool).await.is_empty());
    tx!(home, write, [], |tx| presences::sweep(tx).await);
    let there = tx!(home, read, [tenant], |tx| presences::connected(tx, &tenant).await);
    assert_eq!(there, [ClientId::parse("one").unwrap()]);
    let connection = again.connection.clone();
    tx!(home, write, [tenant, connection], |tx| presences::leave(tx, &tenant, &connection).await);
    assert!(holders(home, &tenant, &other).await.is_empty());
}

pub(crate) async fn a_call_is_offered_until_a_connection_has_it_and_again_when_that_goes(home: &Home) {
    let node = owner("a");
    let (line, call) = Line::parked(home, None, &node).await;
    live(home, &node).await;
    let (tenant, run) = (line.run.tenant.clone(), line.run.id.clone());
    let wait = WaitId::of(WaitKind::Client, &call, 0);
    let tool = line.waits().await[0].wait.tool.clone();
    let offered = async |node: &Owner| {
        let all = tx!(home, read, [tenant, node], |tx| {
            waits::offerable(tx, &tenant, &node, Offerable::Behind(None), 10).await
        });
        let of_run = tx!(home, read, [tenant, node, run], |tx| {
            waits::offerable(tx, &tenant, &node, Offerable::Run(&run), 10).await
        });
        assert_eq!(all, of_run);
        all.len()
    };
    let claim = async |client: &ClientId, connection: Option<&ConnectionId>| {
        let connection = connection.cloned();
        tx!(home, write, [tenant, run, wait, client], |tx| {
            let until = tx.now().await?.plus_millis(limits::CLAIM_SECONDS * 1000);
            let mine = Claim { client: &client, connection: connection.as_ref(), until };
            waits::claim_for(tx, &tenant, &run, &wait, mine).await
        })
    };
    assert_eq!(offered(&node).await, 0, "nobody holds the tool");
    let (tab, robot) = (presence("tab", None, &[&tool]), presence("robot", None, &[&tool]));
    enter(home, &tenant, &node, &tab).await;
    enter(home, &tenant, &node, &robot).await;
    assert_eq!(offered(&node).await, 1);
    assert_eq!(offered(&owner("other")).await, 0, "its programs are connected to another node");
    assert!(claim(&tab.client, Some(&tab.connection)).await);
    assert_eq!(offered(&node).await, 0);
    assert!(!claim(&robot.client, Some(&robot.connection)).await);
    // The tab closes: its claim goes with its row, long before it lapses.
    let gone = tab.connection.clone();
    tx!(home, write, [tenant, gone], |tx| presences::leave(tx, &tenant, &gone).await);
    assert_eq!(offered(&node).await, 1);
    assert!(claim(&robot.client, Some(&robot.connection)).await);
    // A claim over HTTP has no connection: only time ends it.
    assert!(claim(&robot.client, None).await);
    let gone = robot.connection.clone();
    tx!(home, write, [tenant, gone], |tx| presences::leave(tx, &tenant, &gone).await);
    let third = presence("third", None, &[&tool]);
    enter(home, &tenant, &node, &third).await;
    assert_eq!(offered(&node).await, 0);
    // Progress is counted on open waits alone.
    for count in 1..=3 {
        let told =
            tx!(home, write, [tenant, run, wait], |tx| waits::progressed(tx, &tenant, &run, &wait).await);
        assert_eq!(told, Some(count));
    }
    line.fact(vec![cast::returned(&call, json!(1))], Waking::No).await;
    let told = tx!(home, write, [tenant, run, wait], |tx| waits::progressed(tx, &tenant, &run, &wait).await);
    assert_eq!(told, None);
    assert_eq!(offered(&node).await, 0, "an ended call is nobody's");
}

pub(crate) async fn client_calls_are_news(home: &Home) {
    let mut news = home.store.feed().watch_calls();
    let (line, call) = Line::parked(home, None, &owner("a")).await;
    let heard = news.recv().await.unwrap();
    assert_eq!((&heard.tenant, &heard.run), (&line.run.tenant, &line.run.id));
    assert_eq!(heard.news, CallNews { parked: true, ended: false });
    line.fact(vec![cast::returned(&call, json!(1))], Waking::No).await;
    // PostgreSQL tells a node of its own commits too.
    let heard = loop {
        let heard = news.recv().await.unwrap();
        if heard.news.ended {
            break heard;
        }
    };
    assert_eq!(heard.news, CallNews { parked: false, ended: true });
}

pub(crate) async fn uses_of_tools_add_up_and_are_bounded(home: &Home) {
    let tenant = cast::tenant();
    let agent = AgentName::parse("counted").unwrap();
    let uses = |tool: &str, calls: i64, at: i64| ToolUse {
        tool: named(tool),
        calls,
        failures: calls - 1,
        total_ms: calls * 10,
        last_at: Timestamp::from_millis(at),
    };
    for more in [uses("look", 2, 5_000), uses("look", 3, 4_000), uses("jump", 1, 1_000)] {
        tx!(home, write, [tenant, agent, more], |tx| tool_uses::add(tx, &tenant, &agent, &more).await);
    }
    let sum = ToolUse { failures: 3, ..uses("look", 5, 5_000) };
    let read = async |tenant: &TenantId| {
        tx!(home, read, [tenant, agent], |tx| tool_uses::of_agent(tx, &tenant, &agent).await)
    };
    assert_eq!(read(&tenant).await, [uses("jump", 1, 1_000), sum]);
    assert!(read(&TenantId::parse("stranger").unwrap()).await.is_empty());
    tx!(home, write, [tenant, agent], |tx| {
        for i in 0..limits::COUNTED_TOOLS {
            let one = ToolUse {
                tool: ToolName::parse(&format!("made_up_{i}")).unwrap(),
                calls: 1,
                failures: 0,
                total_ms: 0,
                last_at: Timestamp::from_millis(1),
            };
            tool_uses::add(tx, &tenant, &agent, &one).await?;
        }
        Ok(())
    });
    let more = uses("look", 1, 9_000);
    tx!(home, write, [tenant, agent, more], |tx| tool_uses::add(tx, &tenant, &agent, &more).await);
    let rows = read(&tenant).await;
    assert_eq!(i64::try_from(rows.len()).unwrap(), limits::COUNTED_TOOLS);
    let look = rows.iter().find(|row| row.tool == more.tool).unwrap();
    assert_eq!(look.calls, 6, "what is known still counts");
}
