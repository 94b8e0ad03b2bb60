//! A program that asks an agent something and lends it its own tools for the
//! answer: files below one folder, a database that is only read, the time.
//!
//! ```sh
//! TOOLYARD_URL=http://127.0.0.1:8787 TOOLYARD_SECRET_KEY=… AGENT=notebook \
//!     cargo run -p toolyard-client --features sqlite --example notebook -- notes notes.db "what is new?"
//! ```

use std::error::Error;
use std::io::Write;

use futures::StreamExt;
use toolyard_client::{Auth, ChatEvent, Client, EventKind, kit};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(folder), Some(database), Some(question)) = (args.next(), args.next(), args.next()) else {
        return Err("usage: notebook FOLDER DATABASE QUESTION".into());
    };
    let url = std::env::var("TOOLYARD_URL").unwrap_or_else(|_| "http://127.0.0.1:8787".to_owned());
    let client = Client::builder()
        .base_url(url)
        .auth(Auth::secret_key(std::env::var("TOOLYARD_SECRET_KEY")?))
        .build()?;
    client.register(kit::filesystem(folder)?).await?.register(kit::sqlite(database)?).await?;
    client.register(kit::time()).await?;

    let name = std::env::var("AGENT").unwrap_or_else(|_| "assistant".to_owned());
    let agent = client.entities().agent(&format!("example:{name}"), &name).await?;
    let reader = client.entities().person("example:reader", "Reader").await?;
    let space = client.spaces().create("Notebook").await?.id;
    for entity in [&agent.id, &reader.id] {
        client.spaces().add_member(&space, entity).await?;
    }

    let mut answer = client.chat(&space, question).from(&reader.id).stream().await?;
    while let Some(event) = answer.next().await {
        match event? {
            ChatEvent::Run(event) => {
                if let EventKind::TextDelta(delta) = event.kind {
                    print!("{}", delta.delta);
                    std::io::stdout().flush()?;
                }
            }
            ChatEvent::ToolResult { call, outcome } => println!("[{} {outcome:?}]", call.name),
            ChatEvent::Finished(response) => println!("\n{}", response.status),
            _ => {}
        }
    }
    client.unregister_all().await;
    Ok(())
}
