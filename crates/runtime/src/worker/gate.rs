//! Routing: from a call that the model wrote to a verdict. Validate the
//! arguments, decide the permission, find the place.

use std::collections::HashMap;

use serde_json::{Value, json};
use toolyard_engine::permission::{self, Decision, Grant, GrantScope, Policy};
use toolyard_engine::{AskKind, Effect, Input, ParkKind, RoutedCall, Verdict};
use toolyard_protocol::agent::execution::Execution;
use toolyard_protocol::risk::Risk;
use toolyard_protocol::tool::{Answerers, IfAbsent, Place, ToolSpec, Visibility};
use toolyard_protocol::wait::AnswerRule;
use toolyard_protocol::{CallId, EntityId, Hash, Timestamp, ToolName, ToolOutcome, limits};
use toolyard_schema::parse_arguments;
use toolyard_store::{StoreError, grants};
use toolyard_tools::prebuilt::{self, Way};
use toolyard_tools::{Asking, waiting};

use super::draft::RawCall;
use super::{Stop, Worker};
use crate::live::present::{Wanted, is_held};

/// A name that fits the rule, whatever the model invented: the history must
/// stay well-formed.
pub(super) fn safe_name(name: &str) -> ToolName {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let safe: String = name.chars().map(|c| if fits(c) { c } else { '_' }).take(limits::TOOL_NAME).collect();
    ToolName::parse(&safe).unwrap_or_else(|_| ToolName::unnamed())
}

impl Worker {
    /// Routes the calls of a reply.
    pub(super) async fn route(
        &mut self,
        calls: Vec<RawCall>,
        skipped: &HashMap<CallId, String>,
    ) -> Result<Vec<RoutedCall>, Stop> {
        if calls.is_empty() {
            return Ok(Vec::new());
        }
        let grants = self.grants().await?;
        let most = limits::CALLS_PER_STEP;
        let routed = calls.into_iter().enumerate().map(|(i, raw)| {
            if i >= most {
                let text = format!("Too many calls in one reply: the limit is {most}");
                return refuse(raw.call, safe_name(&raw.name), Value::Null, raw.metadata, failed(text));
            }
            if let Some(plugin) = skipped.get(&raw.call) {
                let args = parse_arguments(&raw.args_text).unwrap_or_default();
                let text = format!("Tool call skipped by plugin {plugin}");
                return refuse(raw.call, safe_name(&raw.name), args, raw.metadata, failed(text));
            }
            self.route_one(raw, &grants)
        });
        let mut routed: Vec<_> = routed.collect();
        for call in &mut routed {
            self.check_present(call).await?;
        }
        Ok(routed)
    }

    /// A call that must not wait for a client ends if none is there.
    async fn check_present(&mut self, call: &mut RoutedCall) -> Result<(), Stop> {
        if !matches!(call.verdict, Verdict::Park { kind: ParkKind::Client, .. }) {
            return Ok(());
        }
        let spec = self.tools().and_then(|tools| tools.set.find(call.tool.as_str()));
        // Whoever brought a tool has it.
        if spec.is_none_or(|spec| spec.if_absent == IfAbsent::Wait || spec.brought.is_some()) {
            return Ok(());
        }
        let (tenant, run, space) = (self.tenant.clone(), self.id.clone(), self.space());
        let (tool, rule) = (call.tool.clone(), call.rule.clone());
        let held = self
            .patiently(move |tx| {
                let (tenant, run, space) = (tenant.clone(), run.clone(), space.clone());
                let (tool, rule) = (tool.clone(), rule.clone());
                Box::pin(async move {
                    let wanted = Wanted { run: &run, space: space.as_ref(), tool: &tool, rule: &rule };
                    is_held(tx, &tenant, wanted).await
                })
            })
            .await?;
        if !held {
            let text = format!("No connected client has the tool {}", call.tool);
            call.verdict = Verdict::Refuse(ToolOutcome::Failed(text));
        }
        Ok(())
    }

    fn route_one(&self, raw: RawCall, grants: &[Grant]) -> RoutedCall {
        let RawCall { call, name, args_text, metadata } = raw;
        let name_fits = ToolName::parse(&name).is_ok();
        let args = match parse_arguments(&args_text) {
            Ok(args) => args,
            Err(e) => {
                let why = failed(e.to_string());
                return refuse(call, safe_name(&name), Value::String(args_text), metadata, why);
            }
        };
        let spec = self.tools().and_then(|tools| tools.set.find(&name));
        let Some(spec) = spec else {
            let shown: String = name.chars().take(limits::TOOL_NAME).collect();
            let why = if let Some(why) = self.withdrawn.why(&name) {
                failed(format!("Tool {shown} is not available: {why}"))
            } else if name_fits {
                Verdict::Unknown(format!("Tool: {shown} not found"))
            } else {
                Verdict::Unknown(format!("Invalid tool call format: {shown:?} is not a tool name"))
            };
            return refuse(call, safe_name(&name), args, metadata, why);
        };
        let verdict = self.verdict(spec, &args, grants, false);
        self.routed(spec, call, args, metadata, verdict)
    }

    fn routed(
        &self,
        spec: &ToolSpec,
        call: CallId,
        args: Value,
        metadata: Value,
        verdict: Verdict,
    ) -> RoutedCall {
        RoutedCall {
            call,
            tool: spec.name.clone(),
            args,
            metadata: Some(metadata).filter(|m| !m.is_null()),
            visibility: spec.visibility,
            place: spec.place,
            risk: spec.risk,
            // For a client it says what its owner said; the gateway never repeats it.
            idempotent: if spec.is_client() { spec.idempotent } else { spec.repeats_safely() },
            untrusted: spec.taints(),
            fingerprint: Some(self.fingerprint(spec)),
            rule: self.rule(spec),
            verdict,
        }
    }

    fn fingerprint(&self, spec: &ToolSpec) -> Hash {
        self.tools().map_or_else(|| spec.fingerprint(), |tools| tools.fingerprint(spec))
    }

    /// A call whose gate was opened: its arguments may be an answerer's, and
    /// rules may have changed meanwhile.
    pub(super) async fn route_again(&mut self, effect: Effect) -> Result<RoutedCall, Stop> {
        let Effect::Route { call, tool, args, approved, provided, fingerprint, .. } = effect else {
            return Err(Stop::Broken(StoreError::broken("not a route")));
        };
        let args = Value::clone(&args);
        let grants = self.grants().await?;
        let spec = self.tools().and_then(|tools| tools.set.find(tool.as_str()));
        let Some(spec) = spec else {
            let why = match self.withdrawn.why(tool.as_str()) {
                Some(why) => failed(format!("Tool {tool} is not available: {why}")),
                None => Verdict::Unknown(format!("Tool: {tool} not found")),
            };
            return Ok(refuse(call, tool, args, Value::Null, why));
        };
        // An approval speaks for the tool as it was shown.
        let approved = approved && fingerprint.as_ref() == Some(&self.fingerprint(spec));
        let verdict = match self.verdict(spec, &args, &grants, approved) {
            // Somebody has given what it asks for.
            Verdict::Ask { kind: AskKind::Input | AskKind::Credential, .. } if provided.is_some() => {
                Verdict::Run
            }
            verdict => verdict,
        };
        let mut routed = self.routed(spec, call, args, Value::Null, verdict);
        self.check_present(&mut routed).await?;
        Ok(routed)
    }

    fn verdict(&self, spec: &ToolSpec, args: &Value, grants: &[Grant], approved: bool) -> Verdict {
        let schema = self.tools().and_then(|tools| tools.schemas.get(&spec.name));
        if let Some(Err(errors)) = schema.map(|s| s.check(args)) {
            let text = errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
            return Verdict::Refuse(ToolOutcome::Failed(text));
        }
        let own = self.agent.as_ref().ok().map(|a| &a.config.permissions);
        let policy = Policy {
            rules: own.map_or(&[], |own| &own.rules),
            ask_from: own.and_then(|own| own.ask_from),
            default_ask_from: self.rt.settings.ask_from,
        };
        match permission::decide(spec, &policy, grants, args, self.run.tainted()) {
            Decision::Deny(text) => Verdict::Refuse(ToolOutcome::Denied(text)),
            Decision::Ask if !approved => Verdict::Ask {
                kind: AskKind::Approval,
                expires: self.expiry(spec),
                payload: question(spec, args),
                state: None,
            },
            Decision::Ask | Decision::Allow => self.dispatch(spec, args),
        }
    }

    /// Where an allowed call goes.
    fn dispatch(&self, spec: &ToolSpec, args: &Value) -> Verdict {
        if spec.is_client() {
            return Verdict::Park { kind: ParkKind::Client, expires: self.expiry(spec), payload: None };
        }
        if let Execution::Prebuilt(prebuilt) = &spec.execution
            && prebuilt::find(&prebuilt.action).is_some_and(|action| matches!(action.way, Way::AskUser))
        {
            return match prebuilt::asked(args) {
                Ok(payload) => {
                    Verdict::Ask { kind: AskKind::Input, expires: self.expiry(spec), payload, state: None }
                }
                Err(text) => Verdict::Refuse(ToolOutcome::Failed(text)),
            };
        }
        let Execution::Waiting(pause) = &spec.execution else { return Verdict::Run };
        match waiting::plan(pause, args) {
            Ok(plan) => Verdict::Park {
                kind: ParkKind::Timer,
                expires: Some(self.now().plus_millis(plan.ms)),
                payload: Some(plan.payload),
            },
            Err(text) => Verdict::Refuse(ToolOutcome::Failed(text)),
        }
    }

    /// A call in flight has stopped to ask; the answer brings it back.
    pub(super) async fn ask(&mut self, call: CallId, asking: Asking) -> Result<(), Stop> {
        let Some((tool, args)) = self.run.call(&call).map(|c| (c.tool.clone(), c.args.clone())) else {
            return Ok(());
        };
        let Some(spec) = self.tools().and_then(|tools| tools.set.find(tool.as_str())) else { return Ok(()) };
        let (kind, payload, state) = match asking {
            Asking::Input { payload, state } => (AskKind::Input, payload, Some(state)),
            Asking::Credential { payload, state } => (AskKind::Credential, payload, Some(state)),
        };
        let verdict = Verdict::Ask { kind, expires: self.expiry(spec), payload, state };
        let mut routed = self.routed(spec, call, Value::clone(&args), Value::Null, verdict);
        // A login is one user's own, whoever else may answer for the tool.
        if let (AskKind::Credential, Some(entity)) = (kind, self.works_for()) {
            routed.rule = AnswerRule::Trigger { entity };
        }
        self.tell(Input::Routed(routed)).await
    }

    /// A call in flight asks in the middle, and waits there for the answer.
    pub(super) async fn question(&mut self, call: &CallId, payload: Value) -> Result<(), Stop> {
        let Some((tool, args)) = self.run.call(call).map(|c| (c.tool.clone(), c.args.clone())) else {
            return Ok(());
        };
        let Some(spec) = self.tools().and_then(|tools| tools.set.find(tool.as_str())) else { return Ok(()) };
        let verdict = Verdict::Question { expires: self.expiry(spec), payload };
        let routed = self.routed(spec, call.clone(), Value::clone(&args), Value::Null, verdict);
        self.tell(Input::Routed(routed)).await
    }

    fn expiry(&self, spec: &ToolSpec) -> Option<Timestamp> {
        Some(self.now().plus_millis(spec.expires_ms.unwrap_or(limits::CLIENT_EXPIRES_MS)))
    }

    /// Who may answer: the tool's word, then the agent's, then the entity that
    /// triggered the run. Without one only backends may.
    fn rule(&self, spec: &ToolSpec) -> AnswerRule {
        let created = self.run.created();
        let agents = created.and_then(|c| c.answerers.shown().copied());
        match spec.answerers.or(agents).unwrap_or_default() {
            Answerers::Members => AnswerRule::Members {},
            Answerers::Admin => AnswerRule::Admin {},
            Answerers::Trigger => match created.and_then(|c| c.trigger.as_ref()) {
                Some(trigger) => AnswerRule::Trigger { entity: trigger.entity.clone() },
                None => AnswerRule::Backend {},
            },
        }
    }

    /// The entity whose permissions and belongings the run uses: the one that
    /// triggered it, until it has heard somebody else.
    pub(super) fn works_for(&self) -> Option<EntityId> {
        let trigger = self.run.created().and_then(|c| c.trigger.as_ref());
        trigger.map(|t| t.entity.clone()).filter(|_| !self.run.is_mixed())
    }

    /// The grants that speak for this run: of its triggering entity, for this space.
    async fn grants(&mut self) -> Result<Vec<Grant>, Stop> {
        if !self.rt.store.may_have_grants() {
            return Ok(Vec::new());
        }
        let entity = self.works_for();
        let (tenant, space) = (self.tenant.clone(), self.space());
        let rows = self
            .patiently(move |tx| {
                let (tenant, entity) = (tenant.clone(), entity.clone());
                Box::pin(async move { grants::of_entity(tx, &tenant, entity.as_ref()).await })
            })
            .await?;
        let grants = rows.into_iter().filter_map(|row| serde_json::from_value::<Grant>(row.body).ok());
        Ok(grants
            .filter(|grant| match &grant.scope {
                GrantScope::Session { space: of } => space.as_ref() == Some(of),
                GrantScope::Stored {} => true,
            })
            .collect())
    }
}

/// What an answerer is shown: the exact arguments, and a hash of them that an
/// answer may bring back.
fn question(spec: &ToolSpec, args: &Value) -> Value {
    let mut shown = json!({
        "toolName": spec.name,
        "description": spec.description,
        "risk": spec.risk,
        "key": permission::key_of(spec),
        "args": args,
        "argsHash": Hash::of_json(args),
    });
    if let Some(service) = &spec.service_id {
        shown["serviceId"] = json!(service);
    }
    // An allow also takes the tool as it is now.
    if let Execution::Mcp(call) = &spec.execution {
        shown["pin"] = json!(call);
    }
    shown
}

fn failed(text: String) -> Verdict {
    Verdict::Refuse(ToolOutcome::Failed(text))
}

fn refuse(call: CallId, tool: ToolName, args: Value, metadata: Value, why: Verdict) -> RoutedCall {
    RoutedCall {
        call,
        tool,
        args,
        metadata: Some(metadata).filter(|m| !m.is_null()),
        visibility: Visibility::Private,
        place: Place::Gateway,
        risk: Risk::Low,
        idempotent: true,
        untrusted: false,
        fingerprint: None,
        rule: AnswerRule::Backend {},
        verdict: why,
    }
}
