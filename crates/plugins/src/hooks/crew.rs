//! The hooks of one agent, from its first use to its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::OnceCell;

use super::{Hook, HookError, Stopped};

/// Hooks that are initialized before their first use and destroyed with the agent.
#[derive(Debug)]
pub struct Crew {
    members: Vec<Member>,
}

#[derive(Debug)]
struct Member {
    hook: Arc<dyn Hook>,
    begun: OnceCell<Result<(), HookError>>,
    started: AtomicBool,
}

impl Crew {
    pub fn new(hooks: impl IntoIterator<Item = Arc<dyn Hook>>) -> Self {
        let member = |hook| Member { hook, begun: OnceCell::new(), started: AtomicBool::new(false) };
        Self { members: hooks.into_iter().map(member).collect() }
    }

    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The hooks that may take part, in their order. Whoever comes first waits
    /// for `initialize`; the others find it done.
    pub async fn ready(&self, provider: &str) -> Result<Vec<Arc<dyn Hook>>, Stopped> {
        let mut ready = Vec::with_capacity(self.members.len());
        for member in &self.members {
            let (hook, plugin) = (&member.hook, member.hook.id());
            let begun = member.begun.get_or_init(|| async {
                member.started.store(true, Ordering::Relaxed);
                let done = hook.initialize(provider).await;
                if let Err(error) = &done {
                    tracing::warn!(plugin, %error, "a plugin could not be initialized");
                }
                done
            });
            match begun.await {
                Ok(()) => ready.push(hook.clone()),
                Err(error) if hook.nature().critical => {
                    return Err(Stopped { plugin: plugin.to_owned(), error: error.clone() });
                }
                Err(_) => {}
            }
        }
        Ok(ready)
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        for member in self.members.iter().rev().filter(|member| member.started.load(Ordering::Relaxed)) {
            member.hook.destroy();
        }
    }
}
