//! The tools and hooks that plugins bring into a run. Installed ones are looked
//! at before every step: what was revoked meanwhile is gone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};
use toolyard_engine::{Input, Note};
use toolyard_plugins::hooks::{Hook, HookError, Stopped};
use toolyard_plugins::scripted::Scripted;
use toolyard_plugins::shipped::{SHIPPED, TRACES, Traces, course, cut_short};
use toolyard_protocol::agent::PluginUse;
use toolyard_protocol::event::PluginEmitted;
use toolyard_protocol::tool::ToolSpec;
use toolyard_tools::{PluginOffer, offer_plugins};

use super::{Stop, TOGETHER, Worker};
use crate::agents::LoadedAgent;

/// What the run cannot have of its plugins.
#[derive(Debug, Default)]
pub(super) struct Withdrawn {
    plugins: BTreeSet<String>,
    /// Tool → the sentence that a call of it hears.
    tools: BTreeMap<String, String>,
}

impl Withdrawn {
    pub(super) fn why(&self, tool: &str) -> Option<&str> {
        self.tools.get(tool).map(String::as_str)
    }
}

/// The hooks of the step at hand.
#[derive(Debug, Default)]
pub(super) struct Hooks {
    /// In the agent's order.
    pub(super) all: Arc<[Arc<dyn Hook>]>,
    /// Those whose runtime ends with the step.
    scripted: Vec<Arc<Scripted>>,
}

impl Worker {
    /// The hooks that a run needs before its first step: it was taken over in
    /// the middle of one, for instance.
    pub(super) async fn bring_hooks(&mut self) -> Result<(), Stop> {
        let (None, Ok(agent)) = (&self.hooks, self.agent.clone()) else { return Ok(()) };
        if let Err(stopped) = self.offered_plugins(&agent).await? {
            // It ends where its next step would begin; until then nothing passes.
            self.hooks = Some(Hooks::default());
            self.doomed = Some(stopped);
        }
        Ok(())
    }

    /// The tools of the agent's plugins, as they are now. Nothing if one of
    /// them stopped the run.
    pub(super) async fn bring_plugins(&mut self, agent: &LoadedAgent) -> Result<Option<Vec<ToolSpec>>, Stop> {
        let offer = match self.offered_plugins(agent).await? {
            Ok(offer) => offer,
            Err(stopped) => return self.stopped(stopped).await.map(|()| None),
        };
        let now = Withdrawn {
            plugins: offer.missing.iter().map(|one| one.plugin.to_string()).collect(),
            tools: offer
                .missing
                .iter()
                .flat_map(|one| one.tools.iter().map(|tool| (tool.clone(), one.why.clone())))
                .collect(),
        };
        let mut notes = Vec::new();
        for one in &offer.missing {
            if self.withdrawn.plugins.contains(one.plugin.as_str()) {
                continue;
            }
            tracing::warn!(run = %self.id, plugin = %one.plugin, why = %one.why, "a plugin takes no part");
            notes.push(Note::PluginEmitted(PluginEmitted {
                plugin: one.plugin.to_string(),
                name: "plugin.missing".to_owned(),
                // Why is the operator's to know.
                value: json!({ "plugin": one.plugin }),
            }));
        }
        self.withdrawn = now;
        if !notes.is_empty() {
            self.tell(Input::Noted(notes)).await?;
        }
        Ok(Some(offer.tools))
    }

    /// Asks for the plugins and puts their hooks into place of the former
    /// step's, unless one of them stops the run.
    async fn offered_plugins(&mut self, agent: &LoadedAgent) -> Result<Result<PluginOffer, Stopped>, Stop> {
        let uses = agent.config.plugins.clone().unwrap_or_default();
        let vendor = if agent.crew.is_empty() { String::new() } else { self.asked_first().0 };
        let compiled = match agent.crew.ready(&vendor).await {
            Ok(hooks) => hooks,
            Err(stopped) => return Ok(Err(stopped)),
        };
        // The operator wants spans of every turn; an agent's own plugin makes them already.
        let traced = self.rt.settings.trace_all && !compiled.iter().any(|hook| hook.id() == TRACES);
        let installed = uses.iter().any(|one| !SHIPPED.contains(&one.id.as_str()));
        let offer = match self.rt.toolbox.plugins.clone().filter(|_| installed) {
            None => PluginOffer::default(),
            Some(plugins) => {
                let (tenant, wanted) = (self.tenant.clone(), uses.clone());
                self.patiently(move |tx| {
                    let (tenant, wanted, rules) = (tenant.clone(), wanted.clone(), plugins.rules.clone());
                    Box::pin(async move { offer_plugins(tx, &tenant, &rules, &wanted).await })
                })
                .await?
            }
        };
        if let Some(gone) = offer.missing.iter().find(|one| one.critical) {
            let (plugin, error) = (gone.plugin.to_string(), HookError(gone.why.clone()));
            return Ok(Err(Stopped { plugin, error }));
        }
        self.close_hooks().await;
        let mut hooks = self.placed(&uses, compiled, &offer);
        if traced {
            let last: Arc<dyn Hook> = Arc::new(Traces::default());
            hooks.all = hooks.all.iter().cloned().chain([last]).collect();
        }
        self.hooks = Some(hooks);
        Ok(Ok(offer))
    }

    /// One list of all hooks in the order of the configuration.
    fn placed(&self, uses: &[PluginUse], compiled: Vec<Arc<dyn Hook>>, offer: &PluginOffer) -> Hooks {
        let Some(plugins) = self.rt.toolbox.plugins.as_ref().filter(|_| !offer.bundles.is_empty()) else {
            return Hooks { all: compiled.into(), scripted: Vec::new() };
        };
        let (mut all, mut scripted) = (Vec::with_capacity(uses.len()), Vec::new());
        for one in uses {
            if let Some(hook) = compiled.iter().find(|hook| hook.id() == one.id.as_str()) {
                all.push(hook.clone());
            }
            let bundle = offer.bundles.iter().find(|bundle| *bundle.id() == one.id);
            if let Some(bundle) = bundle.filter(|bundle| Scripted::has_hooks(bundle)) {
                let options = one.options.clone().unwrap_or_default();
                let hook = plugins.scripted(bundle.clone(), options, self.rt.toolbox.sandbox.as_ref());
                let hook = Arc::new(hook);
                scripted.push(hook.clone());
                all.push(hook as Arc<dyn Hook>);
            }
        }
        Hooks { all: all.into(), scripted }
    }

    /// Ends the trace of a turn that came to no answer.
    pub(super) fn close_trace(&mut self) {
        let Some(end) = self.run.finished() else { return };
        let known = self.run.plugin_state(TOGETHER).and_then(Value::as_object).and_then(course);
        let Some(course) = self.course.as_ref().or(known) else { return };
        let (vendor, model) = self.asked_first();
        self.rt.trace(cut_short(course, &self.scene(vendor, model), end));
        self.course = None;
    }

    /// The step is over for the code of bundles.
    pub(super) async fn close_hooks(&mut self) {
        let Some(hooks) = self.hooks.take().filter(|hooks| !hooks.scripted.is_empty()) else { return };
        let (vendor, model) = self.asked_first();
        let scene = self.scene(vendor, model);
        for hook in hooks.scripted {
            hook.close(&scene).await;
        }
    }
}
