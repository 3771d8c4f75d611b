//! Tests of fleets on embedded clusters.

mod bench;
mod joining;
mod outages;
mod sources;
