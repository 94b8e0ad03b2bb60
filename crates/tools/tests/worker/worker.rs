//! A sandbox process and nothing else.

fn main() -> std::process::ExitCode {
    toolyard_plugins::sandbox::worker::main()
}
