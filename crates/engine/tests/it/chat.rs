//! Replies, steps, limits, usage, taint: the loop when nobody disturbs it.

use serde_json::json;
use toolyard_engine::facts;
use toolyard_engine::{Effect, Input, Note, Reply, State, Tools};
use toolyard_protocol::event::{PluginStateSaved, ReplyAmended, ResultAmended, ToolsetReplaced};
use toolyard_protocol::limits::RunLimits;
use toolyard_protocol::message::Part;
use toolyard_protocol::outcome::OutcomeKind;
use toolyard_protocol::run::{FinishReason, RunEnd, RunStatus, Usage};
use toolyard_protocol::{ErrorCode, Event, Guarded, Hash, MessageId, ToolOutcome};

use crate::fixture::*;

#[test]
fn a_queued_run_starts_when_it_is_claimed() {
    let mut story = Story::queued(RunLimits::default());
    assert_eq!(story.run.status(), RunStatus::Queued);
    assert!(story.run.due().is_empty());
    assert_eq!(kinds(&story.tell(claimed())), ["RunStarted"]);
    assert_eq!(story.run.due(), [Effect::CallModel { step: 1, attempt: 1, tools: Tools::On }]);
}

#[test]
fn a_text_reply_and_the_end_of_the_run_are_one_append() {
    let mut story = Story::started();
    let events = story.reply(vec![]);
    assert_eq!(kinds(&events), ["ModelReplied", "RunFinished"]);
    assert_eq!(story.finished().status, RunEnd::Completed);
    assert_eq!(story.finished().usage.input_tokens, 10);
    assert!(story.run.due().is_empty());
    assert_eq!(story.run.message(), MessageId::of_turn(story.run.id(), 1));
}

#[test]
fn a_gateway_tool_runs_between_two_replies_and_usage_adds_up() {
    let mut story = Story::started();
    let events = story.reply(vec![gateway("a")]);
    assert_eq!(kinds(&events), ["ModelReplied", "ToolCallRequested"]);
    assert_eq!(story.due(), ["tool"]);
    assert_eq!(kinds(&story.ended("a", ok())), ["ToolReturned"]);
    assert_eq!(story.run.state(), &State::Thinking { step: 2, attempt: 1, tools: Tools::On });
    assert_eq!(kinds(&story.reply(vec![])), ["ModelReplied", "RunFinished"]);
    let sum = Usage { input_tokens: 20, output_tokens: 2, ..Usage::default() };
    assert_eq!(story.finished().usage, sum);
}

#[test]
fn a_refused_call_ends_in_the_append_of_its_reply_and_is_never_requested() {
    let mut story = Story::started();
    let unknown = ToolOutcome::Failed("Tool: x not found".to_owned());
    let events = story.reply(vec![refused("a", unknown.clone()), gateway("b")]);
    assert_eq!(kinds(&events), ["ModelReplied", "ToolReturned", "ToolCallRequested"]);
    story.ended("b", ok());
    assert_eq!(story.heard(), [(id("a"), Some(unknown)), (id("b"), Some(ok()))]);
    assert_eq!(story.due(), ["model"]);
}

#[test]
fn spec_18_five_steps_with_tools_are_followed_by_one_without_and_its_calls_are_dropped() {
    let mut story = Story::started();
    for n in 1..=5 {
        let tools = Tools::On;
        assert_eq!(story.run.due(), [Effect::CallModel { step: n, attempt: 1, tools }]);
        let call = format!("c{n}");
        story.reply(vec![gateway(&call)]);
        story.ended(&call, ok());
    }
    assert_eq!(story.run.due(), [Effect::CallModel { step: 6, attempt: 1, tools: Tools::Off }]);
    let events = story.reply(vec![gateway("c6")]);
    assert_eq!(kinds(&events), ["ModelReplied", "RunFinished"]);
    let Event::ModelReplied(last) = &events[0] else { panic!("a reply") };
    assert_eq!((last.calls.len(), last.finish, last.partial), (0, FinishReason::MaxSteps, false));
    assert_eq!(story.finished().status, RunEnd::Completed);
}

/// A vendor that rests in the middle of its own search is asked to go on, as
/// often as there are steps, and the run does not end half-way.
#[test]
fn u14_a_reply_that_the_vendor_paused_is_followed_by_another_step() {
    let mut story = Story::started_with(RunLimits { max_steps: 2, ..RunLimits::default() });
    let paused = || Input::ModelReplied {
        reply: Reply { finish: FinishReason::Paused, ..reply("so far") },
        calls: vec![],
    };
    for (step, tools) in [(2, Tools::On), (3, Tools::Off)] {
        assert_eq!(kinds(&story.tell(paused())), ["ModelReplied"]);
        assert_eq!(story.run.due(), [Effect::CallModel { step, attempt: 1, tools }]);
    }
    assert_eq!(kinds(&story.tell(paused())), ["ModelReplied", "RunFinished"]);
    assert_eq!(story.finished().status, RunEnd::Completed);
}

#[test]
fn run_steps_bound_the_whole_run_and_the_number_is_in_the_sentence() {
    let limits = RunLimits { run_steps: 3, ..RunLimits::default() };
    let mut story = Story::started_with(limits);
    for call in ["a", "b"] {
        story.reply(vec![gateway(call)]);
        assert_eq!(kinds(&story.ended(call, ok())), ["ToolReturned"]);
    }
    story.reply(vec![gateway("c")]);
    assert_eq!(kinds(&story.ended("c", ok())), ["ToolReturned", "RunFinished"]);
    assert_eq!(story.finished().error, Some(ErrorCode::RunSteps));
    assert_eq!(story.finished().message.as_deref(), Some("Stopped after 3 model calls in one run"));
}

#[test]
fn spec_13_three_failures_in_a_row_stop_the_run_in_the_append_of_the_third() {
    let mut story = Story::started();
    story.reply(vec![gateway("a"), gateway("b")]);
    story.ended("a", failed());
    assert_eq!(kinds(&story.ended("b", failed())), ["ToolReturned"]);
    story.reply(vec![gateway("c")]);
    assert_eq!(kinds(&story.ended("c", failed())), ["ToolReturned", "RunFinished"]);
    assert_eq!(story.finished().status, RunEnd::Failed);
    assert_eq!(story.finished().error, Some(ErrorCode::ToolFailures));
    let message = story.finished().message.as_deref();
    assert_eq!(message, Some("Stopped after 3 consecutive tool failures"));
}

#[test]
fn failures_count_in_call_order_not_in_order_of_arrival() {
    // In call order: failed, failed, ok, failed = one in a row at the end.
    // In order of arrival it would have been three.
    let mut story = Story::started();
    story.reply(vec![gateway("a"), gateway("b"), gateway("c"), gateway("d")]);
    story.ended("c", ok());
    story.ended("a", failed());
    story.ended("b", failed());
    assert_eq!(kinds(&story.ended("d", failed())), ["ToolReturned"]);
    assert_eq!(story.due(), ["model"]);
}

#[test]
fn a_success_resets_the_count_and_a_denial_leaves_it() {
    let denied = || ToolOutcome::Denied("no".to_owned());
    let mut story = Story::started();
    story.reply(vec![gateway("a"), gateway("b"), gateway("c")]);
    for (call, outcome) in [("a", failed()), ("b", failed()), ("c", denied())] {
        story.ended(call, outcome);
    }
    assert_eq!(story.due(), ["model"]);
    let mut other = story.clone();
    other.reply(vec![gateway("d")]);
    other.ended("d", failed());
    assert_eq!(other.finished().error, Some(ErrorCode::ToolFailures));
    story.reply(vec![gateway("d"), gateway("e")]);
    story.ended("d", ok());
    story.ended("e", failed());
    assert!(!story.run.is_finished());
}

#[test]
fn all_calls_refused_three_times_stop_the_run_in_the_append_of_the_reply() {
    let mut story = Story::started();
    let calls = ["a", "b", "c"].map(|c| refused(c, failed())).to_vec();
    let events = story.reply(calls);
    let last = events.last().unwrap().kind();
    assert_eq!((events.len(), last), (5, "RunFinished"));
}

#[test]
fn inv_a_the_first_end_of_a_call_wins_while_its_step_is_open_and_after() {
    let mut story = Story::started();
    story.reply(vec![client("a"), gateway("b")]);
    let wait = story.wait("a");
    let second = facts::submit_result(&wait, failed(), None, person()).unwrap().remove(0);
    story.result("a", ok());
    let check = |story: &Story| {
        let mut after = story.run.clone();
        after.fold(&second);
        assert_eq!(after, story.run);
    };
    check(&story);
    story.ended("b", ok());
    check(&story);
    assert!(story.ended("b", failed()).is_empty());
    assert_eq!(story.heard(), [(id("a"), Some(ok())), (id("b"), Some(ok()))]);
}

#[test]
fn a_failed_model_fails_the_run_and_keeps_what_was_shown() {
    let fail = |said| Input::ModelFailed {
        code: ErrorCode::ModelStreamCut,
        message: "The model's answer was cut".to_owned(),
        detail: "connection reset".to_owned(),
        said,
    };
    let mut silent = Story::started();
    assert_eq!(kinds(&silent.tell(fail(None))), ["RunFinished"]);
    let mut story = Story::started();
    let events = story.tell(fail(Some(reply("half"))));
    assert_eq!(kinds(&events), ["ModelReplied", "RunFinished"]);
    let Event::ModelReplied(half) = &events[0] else { panic!("a reply") };
    assert!(half.partial);
    let end = story.finished();
    assert_eq!((end.status, end.error), (RunEnd::Failed, Some(ErrorCode::ModelStreamCut)));
    assert_eq!(end.usage.input_tokens, 10);
    assert_eq!(end.detail, Guarded::Shown("connection reset".to_owned()));
}

#[test]
fn x14_what_an_untrusted_tool_says_taints_the_run_for_good_also_if_it_fails() {
    let mut story = Story::started();
    let mut call = gateway("a");
    call.untrusted = true;
    story.reply(vec![call]);
    // An error is told in the far side's words; a denial is ours.
    for (outcome, taints) in [
        (failed(), true),
        (ToolOutcome::Uncertain("lost".to_owned()), true),
        (ToolOutcome::Denied("no".to_owned()), false),
    ] {
        let mut other = story.clone();
        other.ended("a", outcome);
        assert_eq!(other.run.tainted(), taints);
    }
    story.ended("a", ok());
    assert!(story.run.tainted());
    story.reply(vec![gateway("b")]);
    story.ended("b", ok());
    assert!(story.run.tainted());
}

#[test]
fn notes_ride_behind_their_reply_and_before_the_end() {
    let mut story = Story::started();
    let saved = PluginStateSaved { plugin: "memo".to_owned().into(), state: json!({"n": 1}).into() };
    let mut said = reply("raw");
    said.notes = vec![
        Note::ReplyAmended(ReplyAmended {
            step: 1,
            message: story.run.message(),
            parts: vec![Part::text("amended")],
            show_reasoning: false,
            by: Guarded::Hidden,
        }),
        Note::PluginStateSaved(saved),
    ];
    let events = story.tell(Input::ModelReplied { reply: said, calls: vec![] });
    assert_eq!(kinds(&events), ["ModelReplied", "ReplyAmended", "PluginStateSaved", "RunFinished"]);
    assert_eq!(story.run.last_step().unwrap().reply.parts, [Part::text("amended")]);
    assert_eq!(story.run.plugin_state("memo"), Some(&json!({"n": 1})));
}

#[test]
fn an_amended_result_is_what_the_model_hears() {
    let mut story = Story::acting(true);
    story.ended("a", ok());
    let call = story.run.last_step().unwrap().reply.calls[0].clone();
    story.tell(Input::Noted(vec![Note::ResultAmended(ResultAmended {
        call: call.call,
        tool: call.tool,
        visibility: call.visibility,
        outcome: OutcomeKind::Ok,
        value: json!("masked").into(),
        error: Guarded::Hidden,
        by: Guarded::Hidden,
        untrusted: false,
    })]));
    assert_eq!(story.heard(), [(id("a"), Some(ToolOutcome::Ok(json!("masked"))))]);
    assert_eq!(story.due(), ["model"]);
}

#[test]
fn a_replaced_toolset_holds_from_then_on() {
    let mut story = Story::started();
    assert_eq!(story.run.toolset(), Some(&Hash::of(b"tools")));
    let model = Guarded::Shown("other".to_owned());
    story.fact(vec![ToolsetReplaced { toolset: Hash::of(b"new").into(), model }.into()]);
    assert_eq!(story.run.toolset(), Some(&Hash::of(b"new")));
    assert_eq!(story.run.model(), Some("other"));
}

#[test]
fn progress_is_logged_for_open_calls_only() {
    let progress = || Input::Progressed {
        call: id("a"),
        fraction: Some(0.5),
        message: None,
        preliminary: None,
        ticket: None,
    };
    let mut story = Story::acting(false);
    assert_eq!(kinds(&story.tell(progress())), ["ToolProgressed"]);
    story.ended("a", ok());
    assert!(story.tell(progress()).is_empty());
}

#[test]
fn numbers_of_any_size_do_not_stop_a_fold() {
    let mut story = Story::started();
    let mut huge = reply("x");
    huge.usage.input_tokens = u64::MAX;
    story.tell(Input::ModelReplied { reply: huge, calls: vec![gateway("a")] });
    story.ended("a", ok());
    story.reply(vec![]);
    assert_eq!(story.finished().usage.input_tokens, u64::MAX);
}
