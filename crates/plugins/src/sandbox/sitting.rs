//! Code that is called more than once in one runtime, such as the hooks of a
//! plugin during a step.
//!
//! The runtime is a convenience and not a memory: when many sit at once, or one
//! breaks a limit, the next call finds a fresh one. [`Payload`] is told so.

use std::sync::Arc;

use serde_json::Value;
use toolyard_protocol::limits::SANDBOX_INPUT_BYTES;

use super::error::SandboxError;
use super::host::Host;
use super::job::{Answer, Limits};
use super::pool::Pool;
use super::wire::{Order, Scene};

/// Functions, and how they are called.
#[derive(Debug, Clone)]
pub struct Script {
    scene: Scene,
}

impl Script {
    /// `driver` is our own code: the body of a function that returns an async
    /// function of (the function that is called, the payload, the first function
    /// or null, what the prelude gives…).
    pub fn new(driver: &'static str) -> Self {
        Self {
            scene: Scene {
                functions: Vec::new(),
                first: None,
                driver: driver.to_owned(),
                prelude: None,
                host: false,
                limits: Limits::default(),
            },
        }
    }

    /// One more function: its name, its parameters and its statements.
    #[must_use]
    pub fn function(mut self, name: &str, parameters: &[&str], code: &str) -> Self {
        let parameters = parameters.iter().map(|&name| name.to_owned()).collect();
        self.scene.functions.push((name.to_owned(), parameters, code.to_owned()));
        self
    }

    /// The function that the driver calls before all others. It does so itself:
    /// it alone knows whether it has.
    #[must_use]
    pub fn first(mut self, name: &str) -> Self {
        self.scene.first = Some(name.to_owned());
        self
    }

    /// Our own code that gives further parameters, see [`super::Job::prelude`].
    #[must_use]
    pub fn prelude(mut self, code: &'static str) -> Self {
        self.scene.prelude = Some(code.to_owned());
        self
    }

    /// Of each call.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.scene.limits = limits.bounded();
        self
    }

    /// The code asks its gateway.
    #[must_use]
    pub const fn asks(mut self) -> Self {
        self.scene.host = true;
        self
    }
}

/// What a call is given. The flag says that the runtime is fresh.
pub type Payload<'a> = &'a (dyn Fn(bool) -> Value + Sync);

/// A script at work. Dropping it frees its process.
#[derive(Debug)]
pub struct Sitting {
    pool: Arc<Pool>,
    id: u64,
    scene: Scene,
}

impl Sitting {
    pub(super) fn new(pool: Arc<Pool>, id: u64, script: Script) -> Result<Self, SandboxError> {
        let Script { scene } = script;
        let names = scene.functions.iter().flat_map(|(_, names, _)| names);
        if let Some(name) = names.into_iter().find(|name| !super::worker::is_name(name)) {
            return Err(SandboxError::BadName { name: name.clone() });
        }
        small(scene.functions.iter().map(|(_, _, code)| code.len()).sum())?;
        Ok(Self { pool, id, scene })
    }

    /// Its runtime waits for the next call.
    pub fn is_kept(&self) -> bool {
        self.pool.keeps(self.id)
    }

    /// Calls a function. One call at a time: the other would find a fresh runtime.
    pub async fn call(
        &self,
        function: &str,
        payload: Payload<'_>,
        host: Option<&dyn Host>,
    ) -> Result<Answer, SandboxError> {
        let _place = self.pool.place().await?;
        let kept = self.pool.resume(self.id).and_then(|mut kept| kept.is_alive().then_some(kept));
        let (mut process, fresh) = match kept {
            Some(process) => (process, false),
            None => (self.pool.take().await?, true),
        };
        let value = serde_json::value::to_raw_value(&payload(fresh))
            .map_err(|error| SandboxError::NotJson { message: error.to_string() });
        let value = match value.and_then(|value| small(value.get().len()).map(|()| value)) {
            Ok(value) => value,
            Err(error) => {
                if !fresh {
                    self.pool.park(self.id, process);
                }
                return Err(error);
            }
        };
        if fresh {
            process.sit(&self.scene).await?;
        }
        let order = Order::Call { function: function.to_owned(), value };
        let (answer, keeps) = process.run(&order, &self.scene.limits, host).await;
        if keeps {
            self.pool.park(self.id, process);
        }
        answer
    }
}

impl Drop for Sitting {
    fn drop(&mut self) {
        self.pool.leave(self.id);
    }
}

fn small(bytes: usize) -> Result<(), SandboxError> {
    let limit_bytes = SANDBOX_INPUT_BYTES;
    if bytes > limit_bytes {
        return Err(SandboxError::InputTooLarge { bytes, limit_bytes });
    }
    Ok(())
}
