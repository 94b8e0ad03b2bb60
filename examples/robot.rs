//! A robot that answers two tools: `readSensors` and `executeRobotAction` of
//! the sample agent `robot`. It holds a key of its own, waits for calls and
//! drives. Outcomes are kept in a file, so that a robot which loses power
//! after a move does not make it again.
//!
//! ```sh
//! TOOLYARD_URL=http://127.0.0.1:8787 TOOLYARD_SECRET_KEY=… SPACE=spc_… \
//!     cargo run -p toolyard-client --example robot
//! ```
//!
//! It makes a space of its own if `SPACE` is missing, and prints its id.

use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Deserialize;
use toolyard_client::{
    Auth, CallContext, CancellationToken, Client, Failure, Journal, PluginBuilder, SpaceId, json, plugin,
    tool,
};

/// Where the robot is.
#[derive(Debug, Default)]
struct Position {
    metres: f64,
    degrees: f64,
}

#[derive(Debug, Deserialize)]
struct Action {
    action: String,
    #[serde(default)]
    value: f64,
}

fn wheels() -> PluginBuilder {
    let robot = Arc::new(Mutex::new(Position::default()));
    let seen = Arc::clone(&robot);
    let sensors = tool("readSensors")
        .describe("Reads position, battery and the free distance in front of the robot.")
        .idempotent()
        .run(move |_: serde_json::Value, _cx: CallContext| {
            let at = seen.lock().unwrap_or_else(PoisonError::into_inner);
            let seen = json!({ "metres": at.metres, "degrees": at.degrees, "battery": 0.8, "free": 3.0 });
            async move { Ok::<_, Failure>(seen) }
        });
    let act = tool("executeRobotAction")
        .describe("Makes the robot do one thing and answers when it is done.")
        .parameters(json!({
            "type": "object",
            "properties": {
                "action": { "type": "string", "enum": ["move", "turn", "grip", "release", "stop"] },
                "value": { "type": "number" },
            },
            "required": ["action"],
            "additionalProperties": false,
        }))
        .run(move |Action { action, value }: Action, cx: CallContext| {
            let robot = Arc::clone(&robot);
            async move {
                cx.progress(0.5, &format!("{action}: half way")).await?;
                let mut at = robot.lock().unwrap_or_else(PoisonError::into_inner);
                match action.as_str() {
                    "move" if value.abs() > 3.0 => return Err(Failure::from("the way is blocked")),
                    "move" => at.metres += value,
                    "turn" => at.degrees += value,
                    _ => {}
                }
                Ok(json!({ "done": action, "metres": at.metres, "degrees": at.degrees }))
            }
        });
    plugin("wheels", "1.0.0").tool(sensors).tool(act)
}

/// A space with the agent `robot` in it.
async fn new_space(client: &Client) -> Result<SpaceId, Box<dyn Error>> {
    let agent = client.entities().agent("example:robot", "robot").await?;
    let person = client.entities().person("example:driver", "Driver").await?;
    let space = client.spaces().create("Robot").await?.id;
    client.spaces().add_member(&space, &agent.id).await?;
    client.spaces().add_member(&space, &person.id).await?;
    Ok(space)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::var("TOOLYARD_URL").unwrap_or_else(|_| "http://127.0.0.1:8787".to_owned());
    let journal = std::env::var("JOURNAL").unwrap_or_else(|_| "robot.journal".to_owned());
    let client = Client::builder()
        .base_url(url)
        .auth(Auth::secret_key(std::env::var("TOOLYARD_SECRET_KEY")?))
        .name("robot")
        .journal(Journal::file(journal)?)
        .build()?;
    client.register(wheels()).await?;
    let space = match std::env::var("SPACE") {
        Ok(id) => SpaceId::parse(&id)?,
        Err(_) => new_space(&client).await?,
    };
    println!("serving {space}");
    let stop = CancellationToken::new();
    let at_the_end = stop.clone();
    let signal = async move {
        let _ = tokio::signal::ctrl_c().await;
        at_the_end.cancel();
    };
    let (served, ()) = tokio::join!(client.serve_tools(&space).until(stop), signal);
    println!("answered {} calls", served?.answered);
    client.unregister_all().await;
    Ok(())
}
