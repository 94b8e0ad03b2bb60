//! The project's own chores: `tidy` checks the walls between the rooms, `codegen`
//! writes the generated files. Nothing here is part of the product, and nothing
//! here touches the network, except that `a2a-kit` talks to this machine.

mod a2a_kit;
mod codegen;
mod faults;
mod graph;
mod hostile;
mod tidy;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(name = "xtask", about = "Chores of the Toolyard repository")]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Debug, Subcommand)]
enum Chore {
    /// Check the rules of the house on every file of the repository.
    Tidy,
    /// Write the generated files.
    Codegen {
        /// Write nothing; fail if a file differs from what would be written.
        #[arg(long)]
        check: bool,
    },
    /// Break gateways by a seed, and check what is left.
    Faults(faults::Faults),
    /// Run the proofs against attacks (X1 to X20), wherever they live.
    Hostile(hostile::Hostile),
    /// Run the public compatibility kit of A2A against a gateway.
    A2aKit {
        /// A checkout of the kit, on the branch of the version to judge.
        #[arg(long)]
        dir: std::path::PathBuf,
        /// A Python that has the kit's dependencies.
        #[arg(long, default_value = "python3")]
        python: String,
    },
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let outcome = match arguments.chore {
        Chore::A2aKit { dir, python } => a2a_kit::run(&dir, &python),
        Chore::Faults(faults) => faults::run(&faults),
        Chore::Hostile(hostile) => hostile::run(&hostile),
        Chore::Tidy => tidy::run().map_err(|error| error.to_string()),
        Chore::Codegen { check: false } => codegen::write().map_err(|error| error.to_string()),
        Chore::Codegen { check: true } => codegen::check().map_err(|error| error.to_string()),
    };
    match outcome {
        Ok(report) => {
            println!("{report}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
