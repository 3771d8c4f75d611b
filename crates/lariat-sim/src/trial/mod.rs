//! The program that Lariat itself is tried with: handlers that come and go, misbehave, write and read.

mod behaviour;
mod crew;
mod dice;
mod kinds;
mod operator;
mod own;
mod replicas;
mod setup;
mod trial;
