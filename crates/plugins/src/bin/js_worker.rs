//! A sandbox process and nothing else, for the tests of this crate.

fn main() -> std::process::ExitCode {
    toolyard_plugins::sandbox::worker::main()
}
