//! Logging: one line at each point of the loop, without the words themselves
//! unless the agent asks for them.

use serde::{Deserialize, Serialize};

use toolyard_protocol::manifest::HookName;

use crate::hooks::{Answer, Called, Goes, Hook, Nature, Points, Prompt, Ran, Stage, Step};

pub(super) const ID: &str = "logging";

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Options {
    /// Also what was said, up to 200 characters each.
    pub content: bool,
}

#[derive(Debug, Default)]
pub struct Logging(Options);

impl Logging {
    pub fn new(options: Options) -> Self {
        Self(options)
    }

    fn shown(&self, text: &str) -> String {
        if self.0.content {
            format!(": {}", text.chars().take(200).collect::<String>())
        } else {
            String::new()
        }
    }
}

impl Hook for Logging {
    fn id(&self) -> &str {
        ID
    }

    fn nature(&self) -> Nature {
        let points = Points::of(&[
            HookName::OnUserMessage,
            HookName::OnBeforeToolCall,
            HookName::OnAfterToolCall,
            HookName::OnAgentResponse,
            HookName::OnError,
        ]);
        Nature { points, ..Nature::default() }
    }

    fn on_user_message<'a>(&'a self, stage: &'a mut Stage<'_>, prompt: &'a mut Prompt) -> Step<'a> {
        let last = prompt.messages.last().map(|m| self.shown(&m.content)).unwrap_or_default();
        let (messages, tools) = (prompt.messages.len(), prompt.tools.len());
        stage.log(&format!("step {}: {messages} messages, {tools} tools{last}", stage.scene.step));
        Box::pin(std::future::ready(Ok(())))
    }

    fn on_before_tool_call<'a>(&'a self, stage: &'a mut Stage<'_>, call: &'a mut Called) -> Step<'a, Goes> {
        stage.log(&format!("calls {}{}", call.name, self.shown(&call.args.to_string())));
        Box::pin(std::future::ready(Ok(Goes::On)))
    }

    fn on_after_tool_call<'a>(&'a self, stage: &'a mut Stage<'_>, ran: &'a mut Ran) -> Step<'a> {
        let end = if ran.error.is_some() { "failed" } else { "ended" };
        stage.log(&format!("{} {end}{}", ran.name, self.shown(&ran.result.to_string())));
        Box::pin(std::future::ready(Ok(())))
    }

    fn on_agent_response<'a>(&'a self, stage: &'a mut Stage<'_>, answer: &'a mut Answer) -> Step<'a> {
        let characters = answer.text.chars().count();
        stage.log(&format!("answers {characters} characters{}", self.shown(&answer.text)));
        Box::pin(std::future::ready(Ok(())))
    }

    fn on_error<'a>(&'a self, stage: &'a mut Stage<'_>, error: &'a str) -> Step<'a> {
        stage.log(&format!("error: {error}"));
        Box::pin(std::future::ready(Ok(())))
    }
}
