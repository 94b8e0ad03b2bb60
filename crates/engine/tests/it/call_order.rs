//! D7: eight parallel client results in all 40,320 orders.

use serde_json::json;
use toolyard_engine::facts;
use toolyard_protocol::ToolOutcome;
use toolyard_protocol::wait::Wait;

use crate::fixture::*;

const CALLS: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];

/// Visits every order of `items` (Heap's way: one swap from order to order).
fn orders(items: &mut [usize], n: usize, visit: &mut impl FnMut(&[usize])) {
    if n <= 1 {
        visit(items);
        return;
    }
    for i in 0..n {
        orders(items, n - 1, visit);
        let other = if n.is_multiple_of(2) { i } else { 0 };
        items.swap(other, n - 1);
    }
}

#[test]
fn d7_each_of_eight_results_lands_on_its_own_call_in_all_orders() {
    let mut story = Story::started();
    story.reply(CALLS.map(client).to_vec());
    let waits: Vec<Wait> = CALLS.iter().map(|c| story.wait(c)).collect();
    let value = |n: usize| ToolOutcome::Ok(json!(CALLS[n]));
    let results: Vec<_> = waits
        .iter()
        .enumerate()
        .map(|(n, w)| facts::submit_result(w, value(n), None, person()).unwrap().remove(0))
        .collect();
    let expected: Vec<_> = CALLS.iter().enumerate().map(|(n, c)| (id(c), Some(value(n)))).collect();
    let mut outcome = None;
    let mut seen = 0_u32;
    orders(&mut [0, 1, 2, 3, 4, 5, 6, 7], 8, &mut |order| {
        seen += 1;
        let mut run = story.run.clone();
        for (n, place) in order.iter().enumerate() {
            assert!(run.is_parked() && run.due().is_empty());
            assert_eq!(run.open_waits().len(), 8 - n);
            run.fold(&results[*place]);
        }
        assert_eq!(run.due().len(), 1);
        // The same state, whatever the order was.
        let first = outcome.get_or_insert_with(|| run.clone());
        assert_eq!(*first, run);
    });
    assert_eq!(seen, 40_320);
    let story = Story { run: outcome.unwrap(), ..story };
    assert_eq!(story.heard(), expected);
}
