//! D1, D3, D10: real gateways in a short storm with a fixed seed. The long ones
//! are `cargo run -p xtask -- faults`.

use std::path::PathBuf;
use std::time::Duration;

use toolyard_faults::check::check;
use toolyard_faults::drive::{Database, Plan, Scenario, run};
use toolyard_faults::history::{History, Record};

/// The gateway that the workspace's tests are built with lies beside them.
fn gateway() -> PathBuf {
    let built = PathBuf::from(env!("CARGO_BIN_EXE_toolyard-faults"));
    let gateway = built.with_file_name("toolyard");
    assert!(gateway.exists(), "{gateway:?} is missing: cargo build -p toolyard");
    // A build that goes on meanwhile must not swap it.
    let own = built.with_file_name(format!("toolyard-storm-{}", std::process::id()));
    std::fs::hard_link(gateway, &own).unwrap();
    own
}

fn storm(database: Database, seed: u64) -> History {
    let gateway = gateway();
    let plan = Plan {
        gateway: gateway.clone(),
        other: None,
        onward: false,
        errors: 0,
        redis: false,
        far_side: env!("CARGO_BIN_EXE_toolyard-faults").into(),
        scenario: Scenario::Mixed,
        database,
        seed,
        storm: Duration::from_secs(6),
        players: 6,
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let history = runtime.block_on(run(plan));
    std::fs::remove_file(gateway).unwrap();
    // A storm that breaks nothing proves nothing.
    assert!(history.count(|r| matches!(r, Record::Fault { .. })) >= 1);
    assert!(history.runs().len() >= 6, "only {} runs", history.runs().len());
    history
}

#[test]
fn d1_d3_no_promise_breaks_in_a_storm_on_sqlite() {
    let found = check(&storm(Database::Sqlite, 1));
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn d3_d10_no_promise_breaks_in_a_storm_on_two_nodes_and_postgres() {
    let found = check(&storm(Database::Postgres, 2));
    assert!(found.is_empty(), "{found:#?}");
}
