//! Notifications are signed, and believed once.

use serde_json::json;
use toolyard_dialects::a2a::signing::{BadNotice, NOTICE_SECONDS, Notices, Signer};
use toolyard_protocol::Timestamp;

#[test]
fn x20_a_notification_is_believed_once_for_its_task_in_its_time() {
    let (ours, other) = (Signer::from_seed(&[7; 32]).unwrap(), Signer::from_seed(&[8; 32]).unwrap());
    let at = |seconds: i64| Timestamp::from_millis((1_700_000_000 + seconds) * 1000);
    let notice = |signer: &Signer, name: &str| signer.notice(name, "run_1", b"body", at(0));
    let mut receiver = Notices::of_keys(&ours.jwks());
    let good = notice(&ours, "a");
    assert_eq!(receiver.accept(&good, "run_1", b"body", at(1)), Ok(()));
    assert_eq!(receiver.accept(&good, "run_1", b"body", at(2)), Err(BadNotice::Repeated));
    let fresh = notice(&ours, "b");
    assert_eq!(receiver.accept(&fresh, "run_2", b"body", at(1)), Err(BadNotice::OtherTask));
    assert_eq!(receiver.accept(&fresh, "run_1", b"other", at(1)), Err(BadNotice::Changed));
    for skewed in [NOTICE_SECONDS + 1, -NOTICE_SECONDS - 1] {
        assert_eq!(receiver.accept(&fresh, "run_1", b"body", at(skewed)), Err(BadNotice::WrongTime));
    }
    let forged = notice(&other, "c");
    assert_eq!(receiver.accept(&forged, "run_1", b"body", at(1)), Err(BadNotice::WrongKey));
    // A key that says it is ours does not become ours by it.
    let (_, rest) = forged.split_once('.').unwrap();
    let (head, _) = good.split_once('.').unwrap();
    let posing = format!("{head}.{rest}");
    assert_eq!(receiver.accept(&posing, "run_1", b"body", at(1)), Err(BadNotice::WrongKey));
    for broken in ["", "a.b", "a.b.c", "e30.e30.e30"] {
        assert!(receiver.accept(broken, "run_1", b"body", at(1)).is_err(), "{broken}");
    }
    // What was refused was not used up.
    assert_eq!(receiver.accept(&fresh, "run_1", b"body", at(1)), Ok(()));
    assert_eq!(Notices::of_keys(&json!({})).accept(&good, "run_1", b"body", at(1)), Err(BadNotice::WrongKey));
}
