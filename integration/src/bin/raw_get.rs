//! A program that sends one request, as `kubectl get --raw PATH` does: `raw_get PATH`.
//!
//! The server, its proxy and the credentials are those of the environment.

use std::process::ExitCode;

use anyhow::{Context, Result};
use http::Request;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run().await {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {}", lariat::describe(&*error));
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<String> {
    let path = std::env::args().nth(1).context("usage: raw_get PATH")?;
    let client = lariat::connect().await?;
    let request = Request::get(path).body(Vec::new())?;
    Ok(client.request_text(request).await?)
}
