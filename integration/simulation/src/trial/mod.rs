//! The program that tests Lariat itself: handlers come and go, misbehave, write and read.

mod behaviour;
mod dice;
mod handlers;
mod kinds;
mod loads;
mod operator;
mod own;
mod replicas;
mod setup;
mod trial;
