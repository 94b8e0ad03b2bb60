//! Tools of installed plugins: which ones a run gets, and their calls.
//!
//! Trust is never remembered. Whatever is offered and whatever runs has just
//! been admitted by the keyring as it is now, from the document as it is
//! stored: a revocation counts from the next call on, and a row that somebody
//! changed in the database does not run.

mod fetch;
mod keyring;

use std::sync::Arc;

use serde_json::Value;
use toolyard_egress::Door;
use toolyard_plugins::bundle::{Bundle, Candidate, Moment, Policy};
use toolyard_plugins::sandbox::{Job, Limits, Sandbox, SandboxError};
use toolyard_plugins::scripted::{Means, Scripted};
use toolyard_plugins::shipped::SHIPPED;
use toolyard_protocol::agent::PluginUse;
use toolyard_protocol::agent::execution::{Execution, PluginCall};
use toolyard_protocol::manifest::{FetchHost, PluginTool};
use toolyard_protocol::risk::Risk;
use toolyard_protocol::tool::{IfAbsent, Place, ToolSpec, Visibility};
use toolyard_protocol::{PluginId, TenantId, limits};
use toolyard_store::plugins::{self, Installed};
use toolyard_store::{Store, StoreError, Tx};

pub use keyring::keyring;

use crate::{CallContext, ToolFailure};

/// What the operator says about plugins.
#[derive(Debug, Clone)]
pub struct PluginRules {
    pub policy: Policy,
    /// Distinct curators that must have signed.
    pub threshold: usize,
    pub fetch: FetchRule,
}

/// Which hosts plugins may reach, of those that they ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FetchRule {
    Hosts(Vec<FetchHost>),
    /// All that the guarded door reaches.
    Any,
}

impl PluginRules {
    /// Refuses a host that the operator does not allow.
    pub fn check_fetch(&self, bundle: &Bundle) -> Result<(), String> {
        let FetchRule::Hosts(allowed) = &self.fetch else { return Ok(()) };
        let asked = &bundle.document().permissions.fetch;
        match asked.iter().find(|host| !allowed.contains(host)) {
            Some(host) => Err(format!(
                "Plugin {} asks for fetch to {host}, which the operator does not allow ([plugins] fetch)",
                bundle.id()
            )),
            None => Ok(()),
        }
    }
}

/// The plugins of all tenants.
#[derive(Debug, Clone)]
pub struct Plugins {
    pub store: Arc<Store>,
    pub rules: PluginRules,
    /// For hosts that plugins ask for.
    pub door: Door,
}

/// What an agent's plugins give a run now.
#[derive(Debug, Clone, Default)]
pub struct PluginOffer {
    pub tools: Vec<ToolSpec>,
    /// The plugins that take part, in the agent's order.
    pub bundles: Vec<Arc<Bundle>>,
    pub missing: Vec<MissingPlugin>,
}

/// A plugin that gives nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingPlugin {
    pub plugin: PluginId,
    pub why: String,
    /// The tools that it would have, as far as that is known.
    pub tools: Vec<String>,
    /// Its document says that no run goes on without it.
    pub critical: bool,
}

/// Admits an installed plugin as it is stored, or says why not.
pub async fn admit_installed(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    row: &Installed,
    rules: &PluginRules,
) -> Result<Result<Bundle, String>, StoreError> {
    if row.switched_off {
        return Ok(Err(format!("Plugin {} is switched off", row.id)));
    }
    let now = tx.now().await?;
    let keyring = keyring(tx, tenant, rules.threshold).await?;
    let candidate = match Candidate::read_again(row.document.as_bytes()) {
        Ok(candidate) => candidate,
        Err(why) => return Ok(Err(why.to_string())),
    };
    if candidate.id() != &row.id || candidate.hash() != row.hash {
        return Ok(Err(format!("Plugin {} is not what was installed", row.id)));
    }
    let moment = Moment { now, taken: row.installed_at };
    let admitted = keyring.admit(candidate, rules.policy, moment).map_err(|why| {
        tracing::warn!(plugin = %row.id, version = %row.version, reason = why.reason(), "a plugin is refused");
        why.to_string()
    });
    Ok(admitted.and_then(|bundle| rules.check_fetch(&bundle).map(|()| bundle)))
}

/// The tools and hooks of an agent's plugins, as they are now. Those that ship
/// with the gateway are not looked for.
pub async fn offer_plugins(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    rules: &PluginRules,
    uses: &[PluginUse],
) -> Result<PluginOffer, StoreError> {
    let mut offer = PluginOffer::default();
    for one in uses.iter().filter(|one| !SHIPPED.contains(&one.id.as_str())) {
        let found = find(tx, tenant, &one.id, rules).await?;
        let known = |row: &Installed| serde_json::from_value(row.tools.clone()).unwrap_or_default();
        let tools = found.as_ref().map(|(row, _)| known(row)).unwrap_or_default();
        let critical = found.as_ref().is_some_and(|(row, _)| is_critical(row));
        let other =
            |bundle: &Bundle| one.version.as_ref().filter(|range| !range.has(bundle.version())).cloned();
        let why = match found {
            None => format!("Plugin {} is not installed", one.id),
            Some((_, Err(why))) => why,
            Some((row, Ok(bundle))) => match other(&bundle) {
                Some(range) => {
                    format!("Plugin {} is installed as {}, the agent wants {range}", one.id, row.version)
                }
                None => {
                    offer.tools.extend(specs(&bundle, &row));
                    offer.bundles.push(Arc::new(bundle));
                    continue;
                }
            },
        };
        offer.missing.push(MissingPlugin { plugin: one.id.clone(), why, tools, critical });
    }
    Ok(offer)
}

/// Read from a document that may not be trusted: it can only ask for more care.
fn is_critical(row: &Installed) -> bool {
    let document: Result<Value, _> = serde_json::from_str(&row.document);
    document.is_ok_and(|document| document.get("critical") == Some(&Value::Bool(true)))
}

async fn find(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    id: &PluginId,
    rules: &PluginRules,
) -> Result<Option<(Installed, Result<Bundle, String>)>, StoreError> {
    let Some(row) = plugins::get(tx, tenant, id).await? else { return Ok(None) };
    let bundle = admit_installed(tx, tenant, &row, rules).await?;
    Ok(Some((row, bundle)))
}

impl Plugins {
    /// The hooks of a bundle, for one step.
    pub fn scripted(&self, bundle: Arc<Bundle>, options: Value, sandbox: Option<&Sandbox>) -> Scripted {
        let fetches = !bundle.document().permissions.fetch.is_empty();
        let means = fetches.then(|| {
            let hosts = bundle.document().permissions.fetch.clone();
            Arc::new(fetch::Fetches { door: self.door.clone(), hosts }) as Arc<dyn Means>
        });
        Scripted::new(bundle, options, sandbox.cloned(), means)
    }

    /// Runs a tool's code in the sandbox.
    pub(crate) async fn call(
        &self,
        call: &PluginCall,
        spec: &ToolSpec,
        args: &Value,
        context: &CallContext,
        sandbox: &Sandbox,
    ) -> Result<Value, ToolFailure> {
        let (tenant, id, rules) = (context.tenant.clone(), call.plugin.clone(), self.rules.clone());
        let found = self
            .store
            .read::<_, StoreError, _>(move |tx| Box::pin(async move { find(tx, &tenant, &id, &rules).await }))
            .await;
        let bundle = match found {
            Ok(Some((_, Ok(bundle)))) => bundle,
            Ok(Some((_, Err(why)))) => return Err(tell(why)),
            Ok(None) => return Err(tell(format!("Plugin {} is not installed", call.plugin))),
            Err(error) => {
                tracing::warn!(plugin = %call.plugin, %error, "a plugin cannot be read");
                return Err(tell(format!("Plugin {} cannot be read now. Try again", call.plugin)));
            }
        };
        // What was offered, and maybe approved, is this plugin and no other one of its name.
        let tool = bundle.tool(spec.name.as_str()).filter(|_| *bundle.hash() == call.pin);
        let Some(tool) = tool else {
            return Err(tell(format!(
                "Tool {} has changed since it was offered. Call it again if it still fits",
                spec.name
            )));
        };
        let limits = Limits { time_ms: time_ms(&bundle, tool), ..Limits::default() };
        let job = Job::body(tool.executor_code.clone()).argument("args", args.clone()).limits(limits);
        let hosts = &bundle.document().permissions.fetch;
        if hosts.is_empty() {
            let answer = sandbox.call(job).await.map_err(|error| failed(spec, &error, false))?;
            return Ok(answer.value);
        }
        let host = fetch::Fetch::new(&self.door, hosts, time_ms(&bundle, tool)).map_err(tell)?;
        let answer = sandbox.call_with(job.prelude(fetch::PRELUDE), &host).await;
        Ok(answer.map_err(|error| failed(spec, &error, host.has_written()))?.value)
    }
}

/// How long the code of a tool may run.
fn time_ms(bundle: &Bundle, tool: &PluginTool) -> u64 {
    let fetches = !bundle.document().permissions.is_empty();
    let own = if fetches { limits::TOOL_TIMEOUT_MS } else { limits::SANDBOX_TIME_MS };
    tool.timeout_ms.unwrap_or(own)
}

/// The tools in the words of a run. Those whose code is none are left out (row H51).
fn specs(bundle: &Bundle, row: &Installed) -> Vec<ToolSpec> {
    let broken: Vec<String> = serde_json::from_value(row.broken.clone()).unwrap_or_default();
    let whole = |tool: &&PluginTool| !broken.iter().any(|name| name == tool.name.as_str());
    bundle.document().tools.iter().filter(whole).map(|tool| spec(bundle, tool)).collect()
}

fn spec(bundle: &Bundle, tool: &PluginTool) -> ToolSpec {
    let sounds = Risk::of_name(tool.name.as_str());
    ToolSpec {
        name: tool.name.clone(),
        description: tool.description.clone(),
        input_schema: tool.parameters.clone(),
        execution: Execution::Plugin(PluginCall {
            plugin: bundle.id().clone(),
            version: bundle.version().clone(),
            pin: bundle.hash().clone(),
            fetches: !bundle.document().permissions.is_empty(),
        }),
        place: Place::Gateway,
        risk: tool.risk.map_or(sounds, |stated| stated.max(sounds)),
        visibility: Visibility::Private,
        approval: None,
        answerers: None,
        // The code's own limit comes first; this one also covers its time in the queue.
        timeout_ms: Some(time_ms(bundle, tool) + limits::TOOL_TIMEOUT_MS),
        expires_ms: None,
        if_absent: IfAbsent::default(),
        idempotent: tool.idempotent,
        trusted: false,
        service_id: None,
        deprecated: None,
        category: None,
        version: None,
        brought: None,
    }
}

fn failed(spec: &ToolSpec, error: &SandboxError, has_written: bool) -> ToolFailure {
    let text = format!("Tool {} failed: {error}", spec.name);
    match error {
        // It was stopped in the middle, and something may have arrived.
        SandboxError::TimedOut { .. } | SandboxError::Killed { .. } | SandboxError::Died { .. }
            if has_written =>
        {
            ToolFailure::Uncertain(text)
        }
        _ => ToolFailure::TellModel(text),
    }
}

fn tell(text: impl Into<String>) -> ToolFailure {
    ToolFailure::TellModel(text.into())
}
