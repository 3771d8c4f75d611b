mod against_model;
mod model;
mod rules;
