//! One turn: a message, what follows from it, and the questions in between.

use std::collections::VecDeque;

use futures::StreamExt;
use toolyard_client::{ChatEvent, ChatResponse, ChatStream, Client, Event, EventKind, NewMessage, RunId};

use super::answering::Answering;
use super::input::{Heard, Input};
use super::question::Question;
use super::setup::Place;
use super::show::{Screen, Streamed};
use crate::cli::CliError;

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    Well,
    /// The run failed, or was canceled.
    Badly,
    /// The input ended while something was asked. The run waits on.
    Open,
    /// Ctrl-C, twice.
    Left,
}

pub(super) struct Talk<'a> {
    pub(super) client: &'a Client,
    pub(super) place: &'a Place,
    pub(super) model: Option<&'a str>,
    pub(super) screen: &'a Screen,
    pub(super) input: &'a mut Input,
}

/// What the turn waits for.
#[expect(clippy::large_enum_variant, reason = "there is one at a time, and it goes no further")]
enum Next {
    Item(Option<Result<ChatEvent, toolyard_client::ClientError>>),
    Heard(Heard),
}

impl Talk<'_> {
    pub(super) async fn turn(&mut self, text: &str) -> Result<Ended, CliError> {
        let mut message = NewMessage::text(text);
        message.entity_id = Some(self.place.person.clone());
        message.model = self.model.map(str::to_owned);
        message.client_tools = Some(self.place.tools.clone());
        let chat = self.client.chat_with(&self.place.space, message).max_tool_rounds(0);
        let mut stream = chat.stream().await?;
        let runs: Vec<RunId> = stream.runs().to_vec();
        if runs.is_empty() {
            self.screen.note("no agent heard it");
            return Ok(Ended::Badly);
        }
        let mut streamed = Streamed::default();
        let mut waiting: VecDeque<Question> = VecDeque::new();
        let mut asked: Option<Answering> = None;
        let mut interrupts = 0;
        loop {
            if asked.is_none()
                && let Some(question) = waiting.pop_front()
            {
                asked = Some(Answering::begin(question, self.screen));
            }
            match self.next(&mut stream, asked.is_some()).await {
                Next::Item(None) => return Ok(Ended::Badly),
                Next::Item(Some(Err(error))) => return Err(error.into()),
                Next::Item(Some(Ok(ChatEvent::Finished(response)))) => {
                    self.screen.end_line();
                    return Ok(ended(&response));
                }
                Next::Item(Some(Ok(item))) => self.item(item, &mut streamed, &mut waiting, &mut asked),
                Next::Heard(Heard::Line(line)) => {
                    self.input.typed(self.screen);
                    if let Some(answering) = &mut asked
                        && answering.take(&line, self.client, self.screen).await
                    {
                        asked = None;
                    }
                }
                Next::Heard(Heard::End) => {
                    self.screen.note("nobody answers: the run waits until somebody does (GET /api/waits)");
                    return Ok(Ended::Open);
                }
                Next::Heard(Heard::Interrupt) => {
                    interrupts += 1;
                    asked = None;
                    waiting.clear();
                    if interrupts > 1 {
                        self.screen.end_line();
                        return Ok(Ended::Left);
                    }
                    // Also while the gateway does not answer.
                    let cancel = cancel(self.client, self.screen, &runs);
                    tokio::select! {
                        () = cancel => {}
                        _ = self.input.hear(false) => return Ok(Ended::Left),
                    }
                }
            }
        }
    }

    /// The next event; a line only if somebody was asked.
    async fn next(&mut self, stream: &mut ChatStream, asked: bool) -> Next {
        tokio::select! {
            biased;
            item = stream.next() => Next::Item(item),
            heard = self.input.hear(asked) => Next::Heard(heard),
        }
    }

    fn item(
        &self,
        item: ChatEvent,
        streamed: &mut Streamed,
        waiting: &mut VecDeque<Question>,
        asked: &mut Option<Answering>,
    ) {
        match item {
            ChatEvent::Run(event) => {
                self.screen.event(&event, streamed);
                self.question(&event, waiting, asked);
            }
            ChatEvent::ToolStart(call) => self.screen.own(&call, None),
            ChatEvent::ToolResult { call, outcome } => self.screen.own(&call, Some(&outcome)),
            ChatEvent::Unhandled(calls) => {
                let names: Vec<&str> = calls.iter().map(|call| call.name.as_str()).collect();
                let names = names.join(", ");
                self.screen.note(&format!("waiting for another program to run {names} (Ctrl-C cancels)"));
            }
            ChatEvent::MaxToolRoundsReached { .. } | ChatEvent::Finished(_) => {}
        }
    }

    fn question(&self, event: &Event, waiting: &mut VecDeque<Question>, asked: &mut Option<Answering>) {
        match &event.kind {
            EventKind::Asked(question) => waiting.extend(Question::of(question)),
            EventKind::ChildAsked(question) => waiting.extend(Question::of_child(question)),
            EventKind::Answered(answered) => {
                waiting.retain(|question| *question.wait() != answered.wait_id);
                if asked.as_ref().is_some_and(|asked| *asked.question().wait() == answered.wait_id) {
                    self.screen.note("(somebody else has answered)");
                    *asked = None;
                }
            }
            _ => {}
        }
    }
}

async fn cancel(client: &Client, screen: &Screen, runs: &[RunId]) {
    screen.note("canceling; Ctrl-C again leaves");
    for run in runs {
        // One that has just ended cannot be canceled.
        let _ = client.runs().cancel(run, "Canceled in the terminal").await;
    }
}

fn ended(response: &ChatResponse) -> Ended {
    if response.status == "completed" { Ended::Well } else { Ended::Badly }
}
