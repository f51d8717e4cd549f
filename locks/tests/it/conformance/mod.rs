//! What every recipe has to stand, whatever it is: one set of trials for all.

mod deadlines;
mod drops;
mod faults;
mod losses;
mod subject;
mod trial;
