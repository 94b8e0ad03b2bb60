//! Builders for stories: a run with its log, replies, routed calls and rows.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use toolyard_engine::facts::{self, Answer};
use toolyard_engine::{AskKind, Input, ParkKind, Reply, RoutedCall, Run, Verdict};
use toolyard_protocol::event::{
    CancelRequested, MessageQueued, RunCreated, RunFinished, ToolReturned, Trigger,
};
use toolyard_protocol::limits::RunLimits;
use toolyard_protocol::message::Part;
use toolyard_protocol::principal::{Actor, KeyKind};
use toolyard_protocol::risk::Risk;
use toolyard_protocol::run::{FinishReason, Usage};
use toolyard_protocol::tool::{Place, Visibility};
use toolyard_protocol::wait::{AnswerRule, LedgerChange, Wait};
use toolyard_protocol::{
    AgentName, BranchId, CallId, EntityId, Event, Guarded, Hash, MessageId, RunId, Timestamp, ToolName,
    ToolOutcome, WaitId,
};

pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

/// A run, its log and its ledger, as the store would keep them.
#[derive(Clone)]
pub(crate) struct Story {
    pub(crate) run: Run,
    pub(crate) log: Vec<Event>,
    pub(crate) ledger: BTreeMap<WaitId, Wait>,
}

impl Story {
    /// A created run that nobody works on.
    pub(crate) fn queued(limits: RunLimits) -> Self {
        let id = RunId::parse("run_1").unwrap();
        let mut story = Self { run: Run::new(id.clone()), log: Vec::new(), ledger: BTreeMap::new() };
        story.fact(vec![created(id, limits).into()]);
        story
    }
    /// A run whose model is asked for its first step.
    pub(crate) fn started() -> Self {
        Self::started_with(RunLimits::default())
    }
    pub(crate) fn started_with(limits: RunLimits) -> Self {
        let mut story = Self::queued(limits);
        story.tell(claimed());
        story
    }
    /// A run that waits for the result of client call `a`.
    pub(crate) fn waiting_for_client() -> Self {
        let mut story = Self::started();
        story.reply(vec![client("a")]);
        story
    }
    /// A run whose gateway call `a` is dispatched.
    pub(crate) fn acting(idempotent: bool) -> Self {
        let mut story = Self::started();
        story.reply(vec![RoutedCall { idempotent, ..gateway("a") }]);
        story
    }
    /// Appends events as the store would.
    pub(crate) fn fact(&mut self, events: Vec<Event>) {
        for event in events {
            match LedgerChange::of(&event) {
                Some(LedgerChange::Open(new)) => {
                    let wait = Wait {
                        run: self.run.id().clone(),
                        root: self.run.id().clone(),
                        id: new.id.clone(),
                        kind: new.kind,
                        call: new.call,
                        tool: new.tool,
                        visibility: new.visibility,
                        rule: new.rule,
                        opened_at: NOW,
                        expires_at: new.expires_at,
                        claim: None,
                        payload: new.payload,
                    };
                    self.ledger.insert(new.id, wait);
                }
                Some(LedgerChange::End(id)) => drop(self.ledger.remove(&id)),
                Some(LedgerChange::EndCall(call)) => self.ledger.retain(|_, w| w.call != call),
                None => {}
            }
            self.run.fold(&event);
            self.log.push(event);
        }
    }
    /// Gives an input to the run, appends what it decides, and returns it.
    pub(crate) fn tell(&mut self, input: Input) -> Vec<Event> {
        let events = self.run.next(NOW, input);
        self.fact(events.clone());
        events
    }
    pub(crate) fn reply(&mut self, calls: Vec<RoutedCall>) -> Vec<Event> {
        self.tell(Input::ModelReplied { reply: reply("text"), calls })
    }
    pub(crate) fn ended(&mut self, call: &str, outcome: ToolOutcome) -> Vec<Event> {
        self.tell(Input::ToolEnded {
            call: id(call),
            outcome,
            blob: None,
            untrusted: false,
            notes: Vec::new(),
        })
    }
    /// The open row of a call.
    pub(crate) fn wait(&self, call: &str) -> Wait {
        self.ledger.values().find(|w| w.call == id(call)).unwrap().clone()
    }
    pub(crate) fn result(&mut self, call: &str, outcome: ToolOutcome) {
        let events = facts::submit_result(&self.wait(call), outcome, None, person()).unwrap();
        self.fact(events);
    }
    pub(crate) fn answer(&mut self, call: &str, answer: Answer) {
        let events = facts::answer(&self.wait(call), answer, person()).unwrap();
        self.fact(events);
    }
    pub(crate) fn supersede(&mut self, message: &str) {
        let waits: Vec<Wait> = self.ledger.values().cloned().collect();
        self.fact(facts::supersede(&waits, vec![msg(message)], person()));
    }
    pub(crate) fn cancel(&mut self) {
        let by = Guarded::Shown(person());
        self.fact(vec![CancelRequested { reason: None, by }.into()]);
    }
    pub(crate) fn queue(&mut self, message: &str, interrupt: bool) {
        self.fact(vec![MessageQueued { message: msg(message), interrupt, foreign: false }.into()]);
    }
    /// What the model will read of the results, step by step, in its order.
    pub(crate) fn heard(&self) -> Vec<(CallId, Option<ToolOutcome>)> {
        let steps = self.run.turns().iter().flat_map(|t| t.steps.iter());
        steps
            .flat_map(|s| {
                s.reply
                    .calls
                    .iter()
                    .map(|c| (c.call.clone(), s.result_of(&c.call).map(|r| r.outcome.clone())))
            })
            .collect()
    }
    pub(crate) fn finished(&self) -> &RunFinished {
        self.run.finished().unwrap()
    }
    pub(crate) fn due(&self) -> Vec<&'static str> {
        use toolyard_engine::Effect;
        let name = |e: &Effect| match e {
            Effect::CallModel { .. } => "model",
            Effect::RunTool { .. } => "tool",
            Effect::Route { .. } => "route",
        };
        self.run.due().iter().map(name).collect()
    }
}

pub(crate) fn created(run: RunId, limits: RunLimits) -> RunCreated {
    let entity = EntityId::parse("ent_1").unwrap();
    RunCreated {
        agent: AgentName::parse("assistant").unwrap(),
        agent_version: Hash::of(b"agent").into(),
        toolset: Hash::of(b"tools").into(),
        space: None,
        agent_entity: None,
        trigger: Some(Trigger { entity, message: Some(msg("m0")) }),
        branch: BranchId::main(),
        history_to: 1,
        parent: None,
        root: run,
        depth: 0,
        show_reasoning: false,
        limits: limits.into(),
        on_message: Guarded::Hidden,
        answerers: Guarded::Hidden,
        by: Guarded::Hidden,
        metadata: Guarded::Hidden,
        model: Guarded::Hidden,
        errand: Guarded::Hidden,
        picks: Guarded::Hidden,
        output: Guarded::Hidden,
        tainted: false,
        replayed: None,
        trace: Guarded::Hidden,
    }
}

pub(crate) fn claimed() -> Input {
    Input::Claimed { recovered: false, why: "new".to_owned() }
}
pub(crate) fn recovered() -> Input {
    Input::Claimed { recovered: true, why: "the node died".to_owned() }
}
pub(crate) fn halted() -> Input {
    Input::Halted { said: None }
}
pub(crate) fn id(call: &str) -> CallId {
    CallId::parse(call).unwrap()
}
pub(crate) fn msg(message: &str) -> MessageId {
    MessageId::parse(message).unwrap()
}
pub(crate) fn person() -> Actor {
    Actor::Caller { kind: KeyKind::Public, entity: None, client: None }
}
pub(crate) fn ok() -> ToolOutcome {
    ToolOutcome::Ok(json!({"done": true}))
}
pub(crate) fn failed() -> ToolOutcome {
    ToolOutcome::Failed("broken".to_owned())
}
pub(crate) fn reply(text: &str) -> Reply {
    Reply {
        parts: vec![Part::text(text)],
        usage: Usage { input_tokens: 10, output_tokens: 1, ..Usage::default() },
        cost: Some(5),
        model: None,
        finish: FinishReason::Stop,
        metadata: None,
        notes: Vec::new(),
    }
}
pub(crate) fn routed(call: &str, place: Place, verdict: Verdict) -> RoutedCall {
    RoutedCall {
        call: id(call),
        tool: ToolName::parse("look_up").unwrap(),
        args: json!({"q": call}),
        metadata: None,
        visibility: Visibility::Public,
        place,
        risk: Risk::Low,
        idempotent: false,
        untrusted: false,
        fingerprint: None,
        rule: AnswerRule::Members {},
        verdict,
    }
}
pub(crate) fn gateway(call: &str) -> RoutedCall {
    routed(call, Place::Gateway, Verdict::Run)
}
pub(crate) fn client(call: &str) -> RoutedCall {
    let expires = Some(NOW.plus_millis(1000));
    routed(call, Place::Client, Verdict::Park { kind: ParkKind::Client, expires, payload: None })
}
pub(crate) fn timer(call: &str) -> RoutedCall {
    let expires = Some(NOW.plus_millis(500));
    let payload = Some(json!({"waited": 500, "reason": "tea"}));
    routed(call, Place::Gateway, Verdict::Park { kind: ParkKind::Timer, expires, payload })
}
pub(crate) fn asked(call: &str, kind: AskKind) -> RoutedCall {
    let verdict =
        Verdict::Ask { kind, expires: Some(NOW.plus_millis(1000)), payload: json!({"q": call}), state: None };
    routed(call, Place::Gateway, verdict)
}
pub(crate) fn refused(call: &str, outcome: ToolOutcome) -> RoutedCall {
    routed(call, Place::Gateway, Verdict::Refuse(outcome))
}

pub(crate) fn kinds(events: &[Event]) -> Vec<&'static str> {
    events.iter().map(Event::kind).collect()
}
/// The ends of calls among some events: call and error text (or the value).
pub(crate) fn ends(events: &[Event]) -> Vec<(String, Value)> {
    events
        .iter()
        .filter_map(|e| match e {
            Event::ToolReturned(e) => Some((e.call.to_string(), said_of(e))),
            _ => None,
        })
        .collect()
}
fn said_of(e: &ToolReturned) -> Value {
    match e.outcome() {
        ToolOutcome::Ok(value) => value,
        other => json!(other.text().unwrap()),
    }
}
