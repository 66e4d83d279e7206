//! A point and its figures, in the form that several experiments keep.

use std::fmt::{Debug, Display};
use std::marker::PhantomData;
use std::str::FromStr;

use anyhow::{Error, Result};

use crate::results::{Row, line_of, split_figures};

/// Identifies a measurement. Its text has one word for each name in the header, separated by commas.
pub(crate) trait PointText:
    Clone + Debug + PartialEq + Display + FromStr<Err = Error>
{
    const HEADER: &'static str;
}

/// The names of the figures of an experiment: an enum whose values count from 0.
pub(crate) trait Columns: Copy + Debug + PartialEq {
    /// In the order of the values.
    const NAMES: &'static [&'static str];

    fn place(self) -> usize;
}

/// A point and its results.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PointRecord<P, C> {
    pub(crate) point: P,
    figures: Vec<f64>,
    columns: PhantomData<C>,
}

impl<P: PointText, C: Columns> PointRecord<P, C> {
    /// The record of `point` with these figures; all remaining figures are zero.
    pub(crate) fn new(point: P, figures: &[(C, f64)]) -> Self {
        let mut all = vec![0.0; C::NAMES.len()];
        for (column, figure) in figures {
            all[column.place()] = *figure;
        }
        Self { point, figures: all, columns: PhantomData }
    }

    pub(crate) fn figure(&self, column: C) -> f64 {
        self.figures[column.place()]
    }
}

impl<P: PointText, C: Columns> Row for PointRecord<P, C> {
    type Point = P;

    fn header() -> String {
        format!("{},{}", P::HEADER, C::NAMES.join(","))
    }

    fn parse(line: &str) -> Result<Self> {
        let words = P::HEADER.split(',').count();
        let (point, figures) = split_figures(line, words, C::NAMES.len())?;
        Ok(Self { point: point.parse()?, figures, columns: PhantomData })
    }

    fn line(&self) -> String {
        line_of(&self.point, &self.figures)
    }

    fn point(&self) -> &P {
        &self.point
    }
}
