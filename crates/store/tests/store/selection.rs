//! Random queries by `select`, and their answers computed from a plain vector.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::ops::{Bound, RangeBounds};

use bine_store::{ColumnOf, Id, Select, Snapshot, Turn};

use crate::model::{IdPool, Model, few, format_rows, score};
use crate::random::Random;
use crate::tables::{Message, User};

/// A query for messages.
#[derive(Clone, Debug)]
pub(crate) struct Selection {
    pub(crate) author: Option<Id<User>>,
    #[expect(clippy::option_option, reason = "a condition, on a value that may be missing")]
    subject: Option<Option<u8>>,
    scores: Option<(Bound<i64>, Bound<i64>)>,
    /// Only messages with an even score, by a filter.
    is_even: bool,
    pub(crate) order: Option<OrderColumn>,
    pub(crate) is_descending: bool,
    pub(crate) limit: Option<usize>,
    result: Wanted,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum OrderColumn {
    Author,
    Parent,
    Subject,
    Score,
}

/// The result of the query.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Wanted {
    Rows,
    First,
    Count,
    Sum,
    Average,
    MinScore,
    MaxScore,
    MinSubject,
    MaxSubject,
    CountBySubject,
    SumByAuthor,
    ExtremesByParent,
    WithAuthor,
    WithParent,
    /// The page with this number and length.
    Page(usize, usize),
}

const RESULTS: [Wanted; 14] = [
    Wanted::Rows,
    Wanted::First,
    Wanted::Count,
    Wanted::Sum,
    Wanted::Average,
    Wanted::MinScore,
    Wanted::MaxScore,
    Wanted::MinSubject,
    Wanted::MaxSubject,
    Wanted::CountBySubject,
    Wanted::SumByAuthor,
    Wanted::ExtremesByParent,
    Wanted::WithAuthor,
    Wanted::WithParent,
];

impl Selection {
    /// A random query.
    pub(crate) fn draw(pool: &IdPool, random: &mut Random) -> Self {
        const COLUMNS: [OrderColumn; 4] =
            [OrderColumn::Author, OrderColumn::Parent, OrderColumn::Subject, OrderColumn::Score];
        let result = match random.below(4) {
            0 => Wanted::Rows,
            1 => Wanted::Page(random.below(3) as usize, 1 + random.below(3) as usize),
            _ => RESULTS[random.below(RESULTS.len() as u64) as usize],
        };
        Self {
            author: (random.below(3) == 0).then(|| pool.user(random)),
            subject: (random.below(3) == 0).then(|| few(random)),
            scores: (random.below(3) == 0).then(|| (bound(random), bound(random))),
            is_even: random.below(5) == 0,
            order: COLUMNS.get(random.below(5) as usize).copied(),
            is_descending: random.below(2) == 0,
            limit: (random.below(3) > 0).then(|| random.below(5) as usize),
            result,
        }
    }

    /// The query for all rows.
    pub(crate) fn plain() -> Self {
        Self {
            author: None,
            subject: None,
            scores: None,
            is_even: false,
            order: None,
            is_descending: false,
            limit: None,
            result: Wanted::Rows,
        }
    }

    /// Begins the query on the tables.
    pub(crate) fn select<'s>(&self, now: &'s Snapshot) -> Select<'s, Message> {
        let mut select = now.select::<Message>();
        if let Some(author) = self.author {
            select = select.equals(Message::COLUMN_AUTHOR, author);
        }
        if let Some(scores) = self.scores {
            select = select.within(Message::COLUMN_SCORE, scores);
        }
        if let Some(subject) = self.subject {
            select = select.equals(Message::COLUMN_SUBJECT, subject);
        }
        if self.is_even {
            select = select.filter(|message| message.score % 2 == 0);
        }
        select = match self.order {
            None => select,
            Some(OrderColumn::Author) => select.order_by(Message::COLUMN_AUTHOR),
            Some(OrderColumn::Parent) => select.order_by(Message::COLUMN_PARENT),
            Some(OrderColumn::Subject) => select.order_by(Message::COLUMN_SUBJECT),
            Some(OrderColumn::Score) => select.order_by(Message::COLUMN_SCORE),
        };
        if self.is_descending {
            select = select.rev();
        }
        match self.limit {
            Some(limit) => select.limit(limit),
            None => select,
        }
    }

    /// Runs the query on the tables.
    pub(crate) fn ask(&self, now: &Snapshot) -> String {
        const SCORE: ColumnOf<Message, i64> = Message::COLUMN_SCORE;
        let select = self.select(now);
        match self.result {
            Wanted::Rows => format_rows(select.rows()),
            Wanted::First => format_rows(select.first()),
            Wanted::Count => format_rows([select.count()]),
            Wanted::Sum => format_rows([select.sum(SCORE)]),
            Wanted::Average => format_rows([select.average(SCORE)]),
            Wanted::MinScore => format_rows(select.min(SCORE)),
            Wanted::MaxScore => format_rows(select.max(SCORE)),
            Wanted::MinSubject => format_rows(select.min(Message::COLUMN_SUBJECT)),
            Wanted::MaxSubject => format_rows(select.max(Message::COLUMN_SUBJECT)),
            Wanted::CountBySubject => format_rows(select.group_by(Message::COLUMN_SUBJECT).count()),
            Wanted::SumByAuthor => format_rows(select.group_by(Message::COLUMN_AUTHOR).sum(SCORE)),
            Wanted::ExtremesByParent => {
                let groups = select.group_by(Message::COLUMN_PARENT);
                let subject = Message::COLUMN_SUBJECT;
                let [least, greatest] = [groups.min(subject), groups.max(subject)];
                format_rows(
                    least
                        .into_iter()
                        .zip(greatest)
                        .map(|((parent, least), (_, greatest))| (parent, least, greatest)),
                )
            }
            Wanted::WithAuthor => format_rows(select.with(|message| message.author).rows()),
            Wanted::WithParent => format_rows(select.with(|message| message.parent).rows()),
            Wanted::Page(number, length) => ask_page(&select, number, length),
        }
    }

    /// The expected answer.
    pub(crate) fn expected(&self, model: &Model) -> String {
        let mut all = self.matches(model);
        if let Wanted::Page(number, length) = self.result {
            return expected_page(&all, number, length);
        }
        all.truncate(self.limit.unwrap_or(all.len()));
        let scores = || all.iter().map(|message| message.score);
        let subjects = || all.iter().filter_map(|message| message.subject);
        let sum: i128 = scores().map(i128::from).sum();
        match self.result {
            Wanted::Rows | Wanted::Page(..) => format_rows(all),
            Wanted::First => format_rows(all.first()),
            Wanted::Count => format_rows([all.len()]),
            Wanted::Sum => format_rows([sum]),
            Wanted::Average => {
                format_rows([(!all.is_empty()).then(|| sum as f64 / all.len() as f64)])
            }
            Wanted::MinScore => format_rows(scores().min()),
            Wanted::MaxScore => format_rows(scores().max()),
            Wanted::MinSubject => format_rows(subjects().min()),
            Wanted::MaxSubject => format_rows(subjects().max()),
            Wanted::CountBySubject => {
                let groups = groups(&all, |message| message.subject);
                format_rows(groups.into_iter().map(|(subject, own)| (subject, own.len())))
            }
            Wanted::SumByAuthor => {
                let groups = groups(&all, |message| message.author);
                format_rows(groups.into_iter().map(|(author, own)| {
                    (author, own.iter().map(|message| i128::from(message.score)).sum::<i128>())
                }))
            }
            Wanted::ExtremesByParent => {
                let groups = groups(&all, |message| message.parent);
                format_rows(groups.into_iter().map(|(parent, own)| {
                    let subjects = || own.iter().filter_map(|message| message.subject);
                    (parent, subjects().min(), subjects().max())
                }))
            }
            Wanted::WithAuthor => format_rows(all.into_iter().map(|message| {
                let author = model.users[&message.author.row()].clone();
                (message, author)
            })),
            Wanted::WithParent => format_rows(all.into_iter().map(|message| {
                let parent = message.parent.map(|parent| model.messages[&parent.row()].clone());
                (message, parent)
            })),
        }
    }

    /// All rows that satisfy the conditions, in order.
    pub(crate) fn matches(&self, model: &Model) -> Vec<Message> {
        let is_match = |message: &&Message| {
            self.author.is_none_or(|author| message.author == author)
                && self.subject.is_none_or(|subject| message.subject == subject)
                && self.scores.is_none_or(|scores| scores.contains(&message.score))
                && (!self.is_even || message.score % 2 == 0)
        };
        let mut all: Vec<Message> = model.messages.values().filter(is_match).cloned().collect();
        match self.order {
            None => {}
            Some(OrderColumn::Author) => all.sort_by_key(|message| message.author),
            Some(OrderColumn::Parent) => all.sort_by_key(|message| message.parent),
            Some(OrderColumn::Subject) => all.sort_by_key(|message| message.subject),
            Some(OrderColumn::Score) => all.sort_by_key(|message| message.score),
        }
        if self.is_descending {
            all.reverse();
        }
        all
    }
}

fn groups<K: Ord>(all: &[Message], key: impl Fn(&Message) -> K) -> BTreeMap<K, Vec<&Message>> {
    let mut groups: BTreeMap<K, Vec<&Message>> = BTreeMap::new();
    for message in all {
        groups.entry(key(message)).or_default().push(message);
    }
    groups
}

/// The page with a number, reached by the cursors of the pages before it, and whether pages exist
/// before and after it.
fn ask_page(select: &Select<'_, Message>, number: usize, length: usize) -> String {
    let mut page = select.page(&Turn::First, length).unwrap();
    for _ in 0..number {
        let Some(next) = &page.next else { break };
        let again: bine_store::Cursor = next.to_string().parse().unwrap();
        assert_eq!(again, *next);
        page = select.page_after(&again, length).unwrap();
    }
    format_page(&page.rows, page.previous.is_some(), page.next.is_some())
}

fn expected_page(all: &[Message], number: usize, length: usize) -> String {
    let pages: Vec<&[Message]> = all.chunks(length).collect();
    let number = number.min(pages.len().saturating_sub(1));
    format_page(pages.get(number).unwrap_or(&&[][..]), number > 0, number + 1 < pages.len())
}

fn format_page<R: Debug>(rows: &[R], has_previous: bool, has_next: bool) -> String {
    format!("{rows:?} {has_previous} {has_next}")
}

fn bound(random: &mut Random) -> Bound<i64> {
    match random.below(3) {
        0 => Bound::Included(score(random)),
        1 => Bound::Excluded(score(random)),
        _ => Bound::Unbounded,
    }
}
