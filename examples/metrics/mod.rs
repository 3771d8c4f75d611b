//! The metrics of controllers, served to Prometheus with probes and a console.
//!
//! Lariat counts anyway; a scrape reads the counters, and costs nothing in between.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use fastrand::Rng;
use k8s_openapi::api::core::v1::Pod;
use lariat::console::{Console, ConsoleServer, Serve};
use lariat::prelude::*;
use parking_lot::Mutex;
use tokio::time::sleep;

#[cfg(test)]
mod tests;

/// How many times a failed call is retried.
pub const RETRIES: u32 = 3;

/// Registers a handler that takes up to `longest`, and fails four times in ten; `dice` decide. The original takes up to
/// 0.9 s.
///
/// # Errors
///
/// Pods have such a handler already.
pub fn register(factory: &SharedControllerFactory, dice: Rng, longest: Duration) -> Result<()> {
    let dice = Arc::new(Mutex::new(dice));
    let work = move |_: Context<Pod>| {
        let (share, number) = {
            let mut dice = dice.lock();
            (dice.f64(), dice.u32(0..10))
        };
        async move {
            sleep(longest.mul_f64(share)).await;
            match number % 3 {
                0 => Err("bad luck".into()),
                _ => Ok(Outcome::done()),
            }
        }
    };
    let options = HandlerOptions::default().max_retries(RETRIES);
    let pods = factory.for_object::<Pod>();
    pods.register_handler("work", options.handler(work))?;
    Ok(())
}

/// Serves metrics, probes and the console until the factory has stopped; port 0 means any free port.
///
/// # Errors
///
/// The address is in use, or not of this machine.
pub fn serve(factory: &SharedControllerFactory, address: SocketAddr) -> Result<ConsoleServer> {
    Ok(factory.serve(Console::on(address.to_string()))?)
}
