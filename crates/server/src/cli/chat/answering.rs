//! Asking the person until the gateway has an answer.

use toolyard_client::{Answer, Client};

use super::input::Hidden;
use super::question::{CHOICES, Choice, Field, Form, Question, choice, edited};
use super::show::Screen;

/// Where a question stands: which line comes next.
pub(super) struct Answering {
    question: Question,
    stage: Stage,
    hidden: Option<Hidden>,
}

enum Stage {
    Choose,
    Edit,
    Fields { given: Vec<(Field, serde_json::Value)>, left: Vec<Field> },
    Secret,
}

impl Answering {
    /// Shows a question and asks for its first line.
    pub(super) fn begin(question: Question, screen: &Screen) -> Self {
        let stage = match &question.form {
            Form::Approval => {
                screen.approval(&question.asked);
                Stage::Choose
            }
            Form::Input { fields, .. } => {
                screen.note(&format!("? {}", question.message()));
                Stage::Fields { given: Vec::new(), left: fields.clone() }
            }
            Form::Credential => {
                screen.note(&format!("? {} (it is not shown)", question.message()));
                Stage::Secret
            }
        };
        let mut answering = Self { question, stage, hidden: None };
        answering.ask(screen);
        answering
    }

    pub(super) fn question(&self) -> &Question {
        &self.question
    }

    fn ask(&mut self, screen: &Screen) {
        self.hidden = None;
        match &self.stage {
            Stage::Choose => screen.prompt(CHOICES),
            Stage::Edit => screen.prompt("the arguments, as one line of JSON: "),
            Stage::Fields { left, .. } => {
                screen.prompt(left.first().map(|field| field.label.as_str()).unwrap_or_default());
            }
            Stage::Secret => {
                screen.prompt("credential: ");
                self.hidden = Some(Hidden::new());
            }
        }
    }

    /// Takes a line. True if the gateway has the answer.
    pub(super) async fn take(&mut self, line: &str, client: &Client, screen: &Screen) -> bool {
        let answer = match self.read(line, screen) {
            Some(answer) => answer,
            None => {
                self.ask(screen);
                return false;
            }
        };
        self.hidden = None;
        let wait = self.question.wait();
        let sent = match &self.question.asked.payload {
            // Bound to the exact arguments that were shown.
            Some(payload) => client.waits().answer_shown(wait, &answer, payload).await,
            None => client.waits().answer(wait, &answer).await,
        };
        let Err(error) = sent else { return true };
        screen.note(&format!("not taken: {error}"));
        if error.code() == Some("wait_ended") || error.code() == Some("run_ended") {
            return true;
        }
        // From the beginning: another answer may do.
        let again = Self::begin(self.question.clone(), screen);
        *self = again;
        false
    }

    /// The answer, if this line completes one.
    fn read(&mut self, line: &str, screen: &Screen) -> Option<Answer> {
        match &mut self.stage {
            Stage::Choose => match choice(line) {
                Some(Choice::Answer(answer)) => Some(answer),
                Some(Choice::Edit) => {
                    self.stage = Stage::Edit;
                    None
                }
                None => {
                    screen.note("write one of the letters");
                    None
                }
            },
            Stage::Edit => match edited(line) {
                Ok(answer) => Some(answer),
                Err(why) => {
                    screen.note(&why);
                    None
                }
            },
            Stage::Fields { given, left } => {
                let field = left.first()?.clone();
                match field.read(line) {
                    Ok(value) => {
                        left.remove(0);
                        given.push((field, value));
                    }
                    Err(why) => screen.note(&why),
                }
                let done = left.is_empty().then(|| std::mem::take(given));
                done.map(|given| self.question.provided(&given))
            }
            Stage::Secret => Some(Answer::Provide(serde_json::Value::String(line.to_owned()))),
        }
    }
}
