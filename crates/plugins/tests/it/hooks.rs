//! Chains of hooks, as stories.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use toolyard_plugins::hooks::{
    Answer, Called, Chain, Crew, Emitted, Goes, Hook, HookError, Nature, Points, Prompt, Ran, Said, SaidBy,
    Scene, Stage, State, Step, Stopped,
};
use toolyard_protocol::manifest::HookName;
use toolyard_protocol::{CallId, RunId};

/// Writes its id behind whatever passes, and into a common diary.
#[derive(Debug, Default)]
struct Marker {
    id: &'static str,
    nature: Nature,
    fails_at: Option<HookName>,
    skips: bool,
    diary: Arc<Mutex<Vec<String>>>,
}

impl Marker {
    fn new(id: &'static str, diary: &Arc<Mutex<Vec<String>>>) -> Self {
        Self { id, diary: diary.clone(), ..Self::default() }
    }

    fn at(&self, stage: &mut Stage<'_>, point: HookName) -> Result<(), HookError> {
        self.diary.lock().unwrap().push(format!("{} {}", self.id, point.as_str()));
        let seen = stage.state.get("seen").and_then(Value::as_u64).unwrap_or(0) + 1;
        stage.state.insert("seen".to_owned(), seen.into());
        stage.emit(point.as_str(), json!(self.id));
        if self.fails_at == Some(point) { Err(HookError(format!("{} is ill", self.id))) } else { Ok(()) }
    }
}

fn step<'a>(done: Result<(), HookError>) -> Step<'a> {
    Box::pin(std::future::ready(done))
}

impl Hook for Marker {
    fn id(&self) -> &str {
        self.id
    }
    fn nature(&self) -> Nature {
        self.nature
    }
    fn on_user_message<'a>(&'a self, stage: &'a mut Stage<'_>, prompt: &'a mut Prompt) -> Step<'a> {
        prompt.messages.push(Said { role: SaidBy::User, content: self.id.to_owned(), index: None });
        step(self.at(stage, HookName::OnUserMessage))
    }
    fn on_text_chunk<'a>(&'a self, stage: &'a mut Stage<'_>, chunks: &'a mut Vec<String>) -> Step<'a> {
        chunks.iter_mut().for_each(|chunk| chunk.push_str(self.id));
        step(self.at(stage, HookName::OnTextChunk))
    }
    fn on_text_end<'a>(&'a self, stage: &'a mut Stage<'_>, text: &'a mut String) -> Step<'a> {
        text.push_str(self.id);
        step(self.at(stage, HookName::OnTextEnd))
    }
    fn on_before_tool_call<'a>(&'a self, stage: &'a mut Stage<'_>, call: &'a mut Called) -> Step<'a, Goes> {
        call.args = json!([call.args, self.id]);
        let goes = if self.skips { Goes::Nowhere } else { Goes::On };
        let done = self.at(stage, HookName::OnBeforeToolCall);
        Box::pin(std::future::ready(done.map(|()| goes)))
    }
    fn on_after_tool_call<'a>(&'a self, stage: &'a mut Stage<'_>, ran: &'a mut Ran) -> Step<'a> {
        ran.result = json!([ran.result, self.id]);
        ran.untrusted = false;
        step(self.at(stage, HookName::OnAfterToolCall))
    }
    fn on_agent_response<'a>(&'a self, stage: &'a mut Stage<'_>, answer: &'a mut Answer) -> Step<'a> {
        answer.text.push_str(self.id);
        step(self.at(stage, HookName::OnAgentResponse))
    }
    fn on_error<'a>(&'a self, stage: &'a mut Stage<'_>, error: &'a str) -> Step<'a> {
        self.diary.lock().unwrap().push(format!("{} hears: {error}", self.id));
        step(self.at(stage, HookName::OnError))
    }
    fn initialize<'a>(&'a self, provider: &'a str) -> Step<'a> {
        self.diary.lock().unwrap().push(format!("{} begins with {provider}", self.id));
        let ill = self.fails_at == Some(HookName::Initialize);
        step(if ill { Err(HookError(format!("{} is ill", self.id))) } else { Ok(()) })
    }
    fn destroy(&self) {
        self.diary.lock().unwrap().push(format!("{} ends", self.id));
    }
}

fn scene() -> Scene {
    Scene {
        run: RunId::mint(),
        agent: "assistant".to_owned(),
        client: None,
        thread: None,
        provider: "demo".to_owned(),
        model: "demo-1".to_owned(),
        spoken: None,
        message: "msg_1".to_owned(),
        step: 1,
        trace: None,
    }
}

fn chain(hooks: Vec<Marker>) -> Chain {
    let hooks: Vec<Arc<dyn Hook>> = hooks.into_iter().map(|h| Arc::new(h) as Arc<dyn Hook>).collect();
    Chain::new(hooks.into(), scene(), State::new())
}

fn ran() -> Ran {
    let (id, name) = (CallId::mint(), "look".to_owned());
    Ran { id, name, args: json!({}), result: json!("r"), error: None, untrusted: true }
}

#[tokio::test]
async fn u4_u27_u33_u34_hooks_run_in_order_and_each_gets_what_the_former_made() {
    let diary = Arc::default();
    let mut chain = chain(vec![Marker::new("a", &diary), Marker::new("b", &diary)]);
    let mut prompt = Prompt::default();
    chain.user_message(&mut prompt).await.unwrap();
    assert_eq!(prompt.messages.iter().map(|m| m.content.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    let mut chunks = vec!["x".to_owned(), "y".to_owned()];
    chain.text_chunks(&mut chunks).await.unwrap();
    assert_eq!(chunks, ["xab", "yab"]);
    let mut text = "t".to_owned();
    chain.text_end(&mut text).await.unwrap();
    assert_eq!(text, "tab");
    let mut call = Called { id: CallId::mint(), name: "look".to_owned(), args: json!(1) };
    assert_eq!(chain.before_tool_call(&mut call).await.unwrap(), None);
    assert_eq!(call.args, json!([[1, "a"], "b"]));
    let mut ran = ran();
    chain.after_tool_call(&mut ran).await.unwrap();
    assert_eq!(ran.result, json!([["r", "a"], "b"]));
    let mut answer = Answer { text: "hi".to_owned(), ..Answer::default() };
    chain.agent_response(&mut answer).await.unwrap();
    assert_eq!(answer.text, "hiab");
    let points = [
        "onUserMessage",
        "onTextChunk",
        "onTextEnd",
        "onBeforeToolCall",
        "onAfterToolCall",
        "onAgentResponse",
    ];
    let expected: Vec<String> = points.iter().flat_map(|p| [format!("a {p}"), format!("b {p}")]).collect();
    assert_eq!(*diary.lock().unwrap(), expected);
}

#[tokio::test]
async fn u5_u22_the_state_is_shared_within_a_run_and_left_for_its_next_step() {
    let diary = Arc::default();
    let mut first = chain(vec![Marker::new("a", &diary), Marker::new("b", &diary)]);
    first.text_end(&mut String::new()).await.unwrap();
    let left = first.leave();
    assert_eq!(left.state["seen"], 2);
    let told = |plugin: &str| Emitted {
        plugin: plugin.to_owned(),
        name: "onTextEnd".to_owned(),
        value: json!(plugin),
    };
    assert_eq!(left.emitted, [told("a"), told("b")]);
    let hooks: Vec<Arc<dyn Hook>> = vec![Arc::new(Marker::new("a", &diary))];
    let mut next = Chain::new(hooks.into(), scene(), left.state);
    next.text_end(&mut String::new()).await.unwrap();
    assert_eq!(next.leave().state["seen"], 3);
    assert_eq!(chain(vec![]).leave().state, State::new(), "a new run starts with none");
}

#[tokio::test]
async fn u8_spec_31_a_skipped_call_ends_the_chain_and_names_who_skipped_it() {
    let diary = Arc::default();
    let hooks = vec![
        Marker::new("a", &diary),
        Marker { skips: true, ..Marker::new("b", &diary) },
        Marker::new("c", &diary),
    ];
    let mut call = Called { id: CallId::mint(), name: "look".to_owned(), args: json!(1) };
    assert_eq!(chain(hooks).before_tool_call(&mut call).await.unwrap().as_deref(), Some("b"));
    assert_eq!(*diary.lock().unwrap(), ["a onBeforeToolCall", "b onBeforeToolCall"]);
}

#[tokio::test]
async fn u11_u30_a_failing_plugin_changes_nothing_and_all_hear_of_it() {
    let diary = Arc::default();
    let hooks = vec![
        Marker { fails_at: Some(HookName::OnTextEnd), ..Marker::new("a", &diary) },
        Marker { fails_at: Some(HookName::OnError), ..Marker::new("b", &diary) },
    ];
    let mut chain = chain(hooks);
    let mut text = "t".to_owned();
    chain.text_end(&mut text).await.unwrap();
    assert_eq!(text, "tb", "what the ill one did is undone");
    let heard = diary.lock().unwrap().clone();
    assert!(heard.contains(&"a hears: plugin a failed: a is ill".to_owned()), "{heard:?}");
    assert!(heard.contains(&"b hears: plugin a failed: a is ill".to_owned()), "{heard:?}");
    let left = chain.leave();
    assert!(!left.emitted.iter().any(|e| e.plugin == "a" && e.name == "onTextEnd"), "{left:?}");
}

#[tokio::test]
async fn spec_30_a_critical_plugin_that_fails_stops() {
    let diary = Arc::default();
    let nature = Nature { critical: true, ..Nature::default() };
    let ill = Marker { nature, fails_at: Some(HookName::OnUserMessage), ..Marker::new("a", &diary) };
    let stopped = chain(vec![ill]).user_message(&mut Prompt::default()).await.unwrap_err();
    assert_eq!(stopped, Stopped { plugin: "a".to_owned(), error: HookError("a is ill".to_owned()) });
}

#[tokio::test]
async fn a_hook_is_called_only_where_it_takes_part() {
    let diary = Arc::default();
    let nature = Nature { points: Points::of(&[HookName::OnTextEnd]), ..Nature::default() };
    let mut chain = chain(vec![Marker { nature, ..Marker::new("a", &diary) }]);
    assert!(chain.has(HookName::OnTextEnd) && !chain.has(HookName::OnTextChunk));
    chain.text_chunks(&mut vec!["x".to_owned()]).await.unwrap();
    assert!(diary.lock().unwrap().is_empty());
    chain.text_end(&mut String::new()).await.unwrap();
    assert_eq!(diary.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn what_came_from_outside_stays_so_whatever_a_plugin_says() {
    let mut ran = ran();
    chain(vec![Marker::new("a", &Arc::default())]).after_tool_call(&mut ran).await.unwrap();
    assert!(ran.untrusted);
}

#[test]
fn text_is_held_for_plugins_that_are_critical_and_rewrite() {
    let nature = |critical, rewrites| Nature { critical, rewrites, ..Nature::default() };
    let held = |nature| chain(vec![Marker { nature, ..Marker::new("a", &Arc::default()) }]).must_hold();
    assert!(held(nature(true, true)));
    assert!(!held(nature(true, false)) && !held(nature(false, true)));
}

fn crew(members: Vec<Marker>) -> Crew {
    Crew::new(members.into_iter().map(|member| Arc::new(member) as Arc<dyn Hook>))
}

#[tokio::test]
async fn u12_plugins_are_initialized_once_and_destroyed_with_their_agent() {
    let diary: Arc<Mutex<Vec<String>>> = Arc::default();
    let crew = crew(vec![Marker::new("a", &diary), Marker::new("b", &diary)]);
    for _ in 0..2 {
        assert_eq!(crew.ready("demo").await.unwrap().len(), 2);
    }
    assert_eq!(*diary.lock().unwrap(), ["a begins with demo", "b begins with demo"]);
    drop(crew);
    assert_eq!(diary.lock().unwrap()[2..], ["b ends", "a ends"]);
}

#[tokio::test]
async fn u12_an_agent_that_never_runs_begins_and_ends_nothing() {
    let diary: Arc<Mutex<Vec<String>>> = Arc::default();
    drop(crew(vec![Marker::new("a", &diary)]));
    assert!(diary.lock().unwrap().is_empty());
}

#[tokio::test]
async fn u12_a_plugin_that_cannot_begin_takes_no_part_or_stops_the_run() {
    let diary: Arc<Mutex<Vec<String>>> = Arc::default();
    let ill = || Marker { fails_at: Some(HookName::Initialize), ..Marker::new("a", &diary) };
    let ready = crew(vec![ill(), Marker::new("b", &diary)]).ready("demo").await.unwrap();
    assert_eq!(ready.iter().map(|hook| hook.id()).collect::<Vec<_>>(), ["b"]);
    let critical = Marker { nature: Nature { critical: true, ..Nature::default() }, ..ill() };
    let stopped = crew(vec![critical]).ready("demo").await.unwrap_err();
    assert_eq!(stopped, Stopped { plugin: "a".to_owned(), error: HookError("a is ill".to_owned()) });
}
