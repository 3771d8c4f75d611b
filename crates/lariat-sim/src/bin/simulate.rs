//! Runs the simulation Lariat is tried with over many seeds.

fn main() -> std::process::ExitCode {
    lariat_sim::runner::main()
}
