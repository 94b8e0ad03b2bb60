//! How long the pauses between requests are.

use std::time::Duration;

use toolyard_models::Retry;

const MS: fn(u64) -> Duration = Duration::from_millis;

#[test]
fn pauses_double_and_stop_after_two() {
    let retry = Retry::default();
    assert_eq!(retry.pause(0, None, 0), Some(MS(500)));
    assert_eq!(retry.pause(1, None, 0), Some(MS(1000)));
    assert_eq!(retry.pause(2, None, 0), None);
}

#[test]
fn noise_adds_at_most_a_quarter() {
    for noise in (0..5000).chain([u64::MAX]) {
        let pause = Retry::default().pause(0, None, noise).unwrap();
        assert!((MS(500)..MS(625)).contains(&pause), "{pause:?}");
    }
}

#[test]
fn retry_after_is_honoured_up_to_twenty_seconds() {
    let retry = Retry::default();
    assert_eq!(retry.pause(0, Some(MS(0)), 7), Some(MS(0)));
    assert_eq!(retry.pause(1, Some(MS(20_000)), 7), Some(MS(20_000)));
    assert_eq!(retry.pause(0, Some(MS(20_001)), 7), None);
}

#[test]
fn an_own_pause_never_exceeds_ten_seconds() {
    let retry = Retry { max: 100, pause: MS(500) };
    assert!(retry.pause(99, None, u64::MAX).unwrap() <= MS(10_000));
}
