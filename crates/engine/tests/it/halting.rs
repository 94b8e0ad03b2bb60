//! Cancels, interrupts, queued and superseding messages.

use toolyard_engine::{AskKind, Input, State, Tools};
use toolyard_protocol::Event;
use toolyard_protocol::event::Decision;
use toolyard_protocol::limits::RunLimits;
use toolyard_protocol::outcome::{CANCELED_TEXT, SUPERSEDED_TEXT};
use toolyard_protocol::run::{FinishReason, RunEnd, RunStatus};

use crate::fixture::*;

#[test]
fn a_canceled_queued_run_ends_without_a_start() {
    let mut story = Story::queued(RunLimits::default());
    story.cancel();
    assert_eq!(kinds(&story.tell(claimed())), ["RunFinished"]);
    assert_eq!(story.run.status(), RunStatus::Canceled);
}

#[test]
fn while_a_cancel_is_pending_nothing_is_due_and_woken_waits_for_the_abort() {
    let mut story = Story::started();
    story.cancel();
    assert!(story.run.halting());
    assert!(story.run.due().is_empty());
    assert!(story.tell(Input::Woken).is_empty());
    let events = story.tell(Input::Halted { said: Some(reply("half a sen")) });
    assert_eq!(kinds(&events), ["ModelReplied", "RunFinished"]);
    let Event::ModelReplied(half) = &events[0] else { panic!("a reply") };
    assert_eq!((half.partial, half.finish), (true, FinishReason::Stopped));
    assert_eq!(story.finished().status, RunEnd::Canceled);
    assert_eq!(story.finished().usage.input_tokens, 10);
}

#[test]
fn a_cancel_before_the_first_word_writes_no_reply() {
    let mut story = Story::started();
    story.cancel();
    assert_eq!(kinds(&story.tell(halted())), ["RunFinished"]);
}

#[test]
fn a_reply_that_races_a_cancel_is_kept_as_far_as_it_was_shown_and_its_calls_are_not_made() {
    let mut story = Story::started();
    story.cancel();
    let events = story.reply(vec![gateway("a")]);
    assert_eq!(kinds(&events), ["ModelReplied", "RunFinished"]);
    let Event::ModelReplied(reply) = &events[0] else { panic!("a reply") };
    assert!(reply.partial && reply.calls.is_empty());
}

#[test]
fn a_cancel_ends_every_open_call_in_call_order_and_withdraws_gates() {
    let mut story = Story::started();
    story.reply(vec![gateway("a"), asked("b", AskKind::Approval), client("c"), gateway("d")]);
    story.ended("d", ok());
    story.cancel();
    assert!(story.tell(Input::Woken).is_empty());
    let events = story.tell(halted());
    let canceled = |c: &str| (c.to_owned(), serde_json::json!(CANCELED_TEXT));
    assert_eq!(kinds(&events), ["ToolReturned", "Answered", "ToolReturned", "ToolReturned", "RunFinished"]);
    assert_eq!(ends(&events), [canceled("a"), canceled("b"), canceled("c")]);
    let Event::Answered(gate) = &events[1] else { panic!("an answer") };
    assert_eq!(gate.decision, Decision::Withdraw);
    assert!(story.ledger.is_empty());
}

#[test]
fn a_tool_that_ends_during_a_cancel_keeps_its_own_outcome() {
    let mut story = Story::started();
    story.reply(vec![gateway("a"), client("b")]);
    story.cancel();
    let events = story.ended("a", ok());
    assert_eq!(kinds(&events), ["ToolReturned", "ToolReturned", "RunFinished"]);
    assert_eq!(ends(&events)[0].1, serde_json::json!({"done": true}));
    let mut two = Story::started();
    two.reply(vec![gateway("a"), gateway("b")]);
    two.cancel();
    // The other one is still in flight: the worker has to abort it first.
    assert_eq!(kinds(&two.ended("a", ok())), ["ToolReturned"]);
    assert_eq!(kinds(&two.tell(halted())), ["ToolReturned", "RunFinished"]);
}

#[test]
fn the_claim_of_a_parked_run_closes_it_after_a_cancel() {
    let mut story = Story::waiting_for_client();
    story.cancel();
    assert!(!story.run.is_parked());
    assert_eq!(kinds(&story.tell(claimed())), ["ToolReturned", "RunFinished"]);
    assert_eq!(story.run.status(), RunStatus::Canceled);
}

#[test]
fn a_second_cancel_changes_nothing_and_nothing_follows_the_end() {
    let mut story = Story::waiting_for_client();
    story.cancel();
    story.cancel();
    story.tell(claimed());
    let end = story.run.clone();
    let mut late = story.clone();
    late.fact(story.log.clone());
    late.queue("m1", true);
    late.cancel();
    assert_eq!(late.run, end);
    assert!(story.tell(recovered()).is_empty());
    assert!(story.reply(vec![gateway("z")]).is_empty());
}

#[test]
fn a_queued_message_is_taken_where_the_run_would_finish() {
    let mut story = Story::started();
    story.queue("m1", false);
    story.queue("m2", false);
    story.queue("m2", false);
    assert!(!story.run.halting());
    assert_eq!(story.due(), ["model"]);
    let events = story.reply(vec![]);
    assert_eq!(kinds(&events), ["ModelReplied", "MessageTaken"]);
    let Event::MessageTaken(taken) = &events[1] else { panic!("taken") };
    assert_eq!(taken.messages, [msg("m1"), msg("m2")]);
    assert_eq!(story.run.state(), &State::Thinking { step: 2, attempt: 1, tools: Tools::On });
    assert_eq!((story.run.turn(), story.run.turns()[1].taken.len()), (2, 2));
    assert!(story.run.queued().is_empty());
    assert_eq!(kinds(&story.reply(vec![])), ["ModelReplied", "RunFinished"]);
}

#[test]
fn the_step_counter_starts_again_with_a_message_and_the_runs_own_does_not() {
    let limits = RunLimits { max_steps: 1, run_steps: 4, ..RunLimits::default() };
    let mut story = Story::started_with(limits);
    story.reply(vec![gateway("a")]);
    story.ended("a", ok());
    assert!(matches!(story.run.state(), State::Thinking { tools: Tools::Off, .. }));
    story.queue("m1", false);
    story.reply(vec![]);
    assert!(matches!(story.run.state(), State::Thinking { tools: Tools::On, .. }));
    story.reply(vec![gateway("b")]);
    story.ended("b", ok());
    story.queue("m2", false);
    let events = story.reply(vec![]);
    assert_eq!(kinds(&events), ["ModelReplied", "MessageTaken", "RunFinished"]);
    assert_eq!(story.finished().message.as_deref(), Some("Stopped after 4 model calls in one run"));
}

#[test]
fn an_interrupt_cuts_the_model_short_and_the_run_hears_all_queued_messages() {
    let mut story = Story::started();
    story.queue("m1", false);
    story.queue("m2", true);
    assert!(story.run.halting() && story.run.due().is_empty());
    let events = story.tell(Input::Halted { said: Some(reply("I was say")) });
    assert_eq!(kinds(&events), ["ModelReplied", "MessageTaken"]);
    let Event::MessageTaken(taken) = &events[1] else { panic!("taken") };
    assert_eq!(taken.messages, [msg("m1"), msg("m2")]);
    assert_eq!((story.run.turn(), story.run.step()), (2, 2));
    assert_eq!(story.due(), ["model"]);
}

#[test]
fn a_whole_reply_that_races_an_interrupt_stays_whole() {
    let mut story = Story::started();
    story.queue("m1", true);
    let events = story.reply(vec![]);
    assert_eq!(kinds(&events), ["ModelReplied", "MessageTaken"]);
    let Event::ModelReplied(whole) = &events[0] else { panic!("a reply") };
    assert!(!whole.partial);
}

#[test]
fn an_interrupt_ends_open_calls_as_superseded_and_the_run_goes_on() {
    let mut story = Story::started();
    story.reply(vec![gateway("a"), client("b")]);
    story.queue("m1", true);
    assert!(story.run.due().is_empty());
    let events = story.tell(halted());
    assert_eq!(kinds(&events), ["ToolReturned", "ToolReturned", "MessageTaken"]);
    assert_eq!(ends(&events)[1].1, serde_json::json!(SUPERSEDED_TEXT));
    assert_eq!(story.due(), ["model"]);
    assert!(story.ledger.is_empty());
}

#[test]
fn an_interrupt_does_not_disturb_a_waiting_run() {
    let mut story = Story::waiting_for_client();
    story.queue("m1", true);
    assert!(story.run.is_parked() && !story.run.halting());
    assert!(story.tell(Input::Woken).is_empty());
    story.result("a", ok());
    assert!(story.tell(claimed()).is_empty());
    assert_eq!(story.due(), ["model"]);
    assert_eq!(kinds(&story.reply(vec![])), ["ModelReplied", "MessageTaken"]);
}

#[test]
fn an_interrupt_of_a_mixed_step_is_heard_though_its_last_gateway_call_ends_first() {
    let mut story = Story::started();
    story.reply(vec![gateway("a"), client("b")]);
    story.queue("m1", true);
    let events = story.ended("a", ok());
    assert_eq!(kinds(&events), ["ToolReturned", "ToolReturned", "MessageTaken"]);
    assert_eq!(ends(&events)[0].1, serde_json::json!({"done": true}));
}

#[test]
fn a_halting_run_opens_nothing_new() {
    let mut story = Story::acting(false);
    story.queue("m1", true);
    assert!(story.tell(Input::Routed(asked("a", AskKind::Input))).is_empty());
    let child = toolyard_protocol::RunId::parse("run_2").unwrap();
    assert!(
        story.tell(Input::ChildStarted { call: id("a"), child, expires: None, stream: false }).is_empty()
    );
    assert_eq!(kinds(&story.tell(halted())), ["ToolReturned", "MessageTaken"]);
}

#[test]
fn a_cancel_wins_over_an_interrupt() {
    let mut story = Story::started();
    story.queue("m1", true);
    story.cancel();
    assert_eq!(kinds(&story.tell(halted())), ["RunFinished"]);
    assert_eq!(story.run.queued().len(), 1);
}

#[test]
fn spec_11_a_superseding_message_closes_all_waits_and_the_same_run_goes_on() {
    let mut story = Story::started();
    story.reply(vec![client("a"), asked("b", AskKind::Approval), gateway("c")]);
    story.ended("c", ok());
    assert!(story.run.is_parked());
    story.supersede("m1");
    let tail = &story.log[story.log.len() - 4..];
    assert_eq!(kinds(tail), ["Answered", "ToolReturned", "ToolReturned", "MessageTaken"]);
    assert!(ends(tail).iter().all(|(_, text)| text == SUPERSEDED_TEXT));
    assert_eq!(story.run.turns()[1].taken, [msg("m1")]);
    assert!(story.tell(claimed()).is_empty());
    assert_eq!(story.due(), ["model"]);
    assert!(story.ledger.is_empty());
}

#[test]
fn a_message_that_was_taken_while_calls_run_interrupts_them() {
    // The store never writes this: messages supersede parked runs only.
    let mut story = Story::acting(false);
    story.supersede("m1");
    assert!(story.run.halting());
    assert_eq!(kinds(&story.tell(halted())), ["ToolReturned", "MessageTaken"]);
    assert_eq!(story.run.turns()[1].taken, [msg("m1")]);
}

#[test]
fn a_new_message_starts_the_count_of_failures_again() {
    let mut story = Story::started();
    story.reply(vec![refused("a", failed()), refused("b", failed()), client("c")]);
    story.supersede("m1");
    story.reply(vec![gateway("d")]);
    story.ended("d", failed());
    assert!(!story.run.is_finished());
}

#[test]
fn halted_without_a_reason_to_halt_is_stale() {
    let mut story = Story::started();
    assert!(story.tell(Input::Halted { said: Some(reply("x")) }).is_empty());
    let mut story = Story::acting(false);
    assert!(story.tell(halted()).is_empty());
    let mut story = Story::waiting_for_client();
    assert!(story.tell(halted()).is_empty());
}
