mod model;
mod rules;
