//! Runs the simulation that tests Lariat over many seeds.

fn main() -> std::process::ExitCode {
    lariat_simulation::main()
}
