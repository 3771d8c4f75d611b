//! The program that tests Lariat itself: handlers come and go, misbehave, write and read.

mod behaviour;
mod crew;
mod dice;
mod kinds;
mod operator;
mod own;
mod replicas;
mod setup;
mod trial;
