//! A reference model of the tables, built of plain maps.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::ops::{Bound, RangeBounds};

use bine_store::{
    Error, Id, IndexOf, InvalidValue, KeyParts, RowId, Snapshot, Table, Transaction, ValueFault,
};

use crate::random::Random;
use crate::selection::Selection;
use crate::tables::{Message, User};

/// The contents of the tables.
#[derive(Clone, PartialEq, Default, Debug)]
pub(crate) struct Model {
    pub(crate) users: BTreeMap<RowId, User>,
    pub(crate) messages: BTreeMap<RowId, Message>,
}

/// A query.
#[derive(Clone, Debug)]
pub(crate) enum Query {
    User(Id<User>),
    Message(Id<Message>),
    NewestUsers(usize),
    Messages,
    Count,
    Name(String),
    Age(Option<u8>),
    AgeName(Option<u8>, String),
    Ages(Bound<Option<u8>>, Bound<Option<u8>>),
    FirstNames(String, usize),
    LastNames(String, usize),
    Author(Id<User>),
    AuthorScores(Id<User>, i64, i64),
    Subject(Option<u8>),
    SubjectScore(Option<u8>, i64),
    Select(Selection),
}

/// An operation on one row.
#[derive(Clone, Debug)]
pub(crate) enum Operation {
    AddUser(User),
    AddMessage(Message),
    SetUser(User),
    SetMessage(Message),
    RemoveUser(Id<User>),
    RemoveMessage(Id<Message>),
}

/// The result of an operation.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Outcome {
    Added(RowId),
    Set,
    Removed,
    NothingToRemove,
    Refused(Error),
}

impl Query {
    /// Runs the query on the tables.
    pub(crate) fn ask(&self, now: &Snapshot) -> String {
        match self {
            Self::User(id) => format_rows(now.get(*id)),
            Self::Message(id) => format_rows(now.get(*id)),
            Self::NewestUsers(count) => format_rows(now.newest::<User>(*count)),
            Self::Messages => format_rows(now.all::<Message>()),
            Self::Count => format_rows([now.count::<User>()]),
            Self::Name(name) => format_rows(now.one(User::BY_NAME, name)),
            Self::Age(age) => format_rows(now.find(User::BY_AGE_NAME, (*age,))),
            Self::AgeName(age, name) => format_rows(now.find(User::BY_AGE_NAME, (*age, name))),
            Self::Ages(from, until) => {
                let bounds = (from.map(|age| (age,)), until.map(|age| (age,)));
                format_rows(now.range(User::BY_AGE_NAME, bounds))
            }
            Self::FirstNames(from, count) => {
                format_rows(now.range(User::BY_NAME, from.as_str()..).take(*count))
            }
            Self::LastNames(until, count) => {
                format_rows(now.range(User::BY_NAME, ..=until.as_str()).rev().take(*count))
            }
            Self::Author(author) => format_rows(now.find(Message::BY_AUTHOR_SCORE, (*author,))),
            Self::AuthorScores(author, from, until) => {
                let range = (*author, *from)..(*author, *until);
                format_rows(now.range(Message::BY_AUTHOR_SCORE, range))
            }
            Self::Subject(subject) => format_rows(now.find(Message::BY_SUBJECT_SCORE, (*subject,))),
            Self::SubjectScore(subject, score) => {
                format_rows(now.find(Message::BY_SUBJECT_SCORE, (*subject, *score)))
            }
            Self::Select(selection) => selection.ask(now),
        }
    }

    /// A random query.
    pub(crate) fn draw(pool: &IdPool, random: &mut Random) -> Self {
        match random.below(20) {
            0 => Self::User(pool.user(random)),
            1 => Self::Message(pool.message(random)),
            2 => Self::NewestUsers(random.below(5) as usize),
            3 => Self::Messages,
            4 => Self::Count,
            5 => Self::Name(name(random)),
            6 => Self::Age(few(random)),
            7 => Self::AgeName(few(random), name(random)),
            8 => Self::Ages(bound(random), bound(random)),
            9 => Self::FirstNames(name(random), random.below(4) as usize),
            10 => Self::LastNames(name(random), random.below(4) as usize),
            11 => Self::Author(pool.user(random)),
            12 => {
                let from = score(random);
                Self::AuthorScores(pool.user(random), from, from + score(random))
            }
            13 => Self::Subject(few(random)),
            14 => Self::SubjectScore(few(random), score(random)),
            _ => Self::Select(Selection::draw(pool, random)),
        }
    }
}

impl Operation {
    /// Runs the operation in a transaction.
    pub(crate) fn apply_to(&self, change: &mut Transaction) -> Outcome {
        let added = match self {
            Self::AddUser(user) => change.insert(user.clone()).map(Id::row),
            Self::AddMessage(message) => change.insert(message.clone()).map(Id::row),
            // Covers both ways to change a row.
            Self::SetUser(user) => return set(change.replace(user)),
            Self::SetMessage(message) => {
                return set(change.update(message.id, |row| row.clone_from(message)));
            }
            Self::RemoveUser(id) => return removed(change.remove(*id)),
            Self::RemoveMessage(id) => return removed(change.remove(*id)),
        };
        added.map_or_else(Outcome::Refused, Outcome::Added)
    }

    /// A random operation, which may fail.
    pub(crate) fn draw(pool: &IdPool, random: &mut Random) -> Self {
        match random.below(12) {
            0 | 1 => Self::AddUser(User::new(&name(random), few(random))),
            2 | 3 => Self::AddMessage(message(Id::unassigned(), pool, random)),
            4 | 5 => Self::SetUser(User {
                id: pool.user(random),
                ..User::new(&name(random), few(random))
            }),
            6 | 7 => Self::SetMessage(message(pool.message(random), pool, random)),
            8 | 9 => Self::RemoveUser(pool.user(random)),
            _ => Self::RemoveMessage(pool.message(random)),
        }
    }
}

fn set(outcome: Result<(), Error>) -> Outcome {
    outcome.map_or_else(Outcome::Refused, |()| Outcome::Set)
}

fn removed(outcome: Result<bool, Error>) -> Outcome {
    match outcome {
        Ok(true) => Outcome::Removed,
        Ok(false) => Outcome::NothingToRemove,
        Err(error) => Outcome::Refused(error),
    }
}

/// Existing and former ids. Operations choose among few ids, so that transactions conflict.
#[derive(Clone, Default, Debug)]
pub(crate) struct IdPool {
    users: Vec<Id<User>>,
    messages: Vec<Id<Message>>,
}

impl IdPool {
    /// Adds the id of an inserted row.
    pub(crate) fn learn(&mut self, operation: &Operation, outcome: &Outcome) {
        let Outcome::Added(id) = outcome else { return };
        match operation {
            Operation::AddUser(_) => self.users.push(Id::of(*id)),
            _ => self.messages.push(Id::of(*id)),
        }
    }

    pub(crate) fn user(&self, random: &mut Random) -> Id<User> {
        recent(&self.users, random)
    }

    pub(crate) fn message(&self, random: &mut Random) -> Id<Message> {
        recent(&self.messages, random)
    }
}

/// One of the latest ids, sometimes any id, or an unused one.
fn recent<T>(ids: &[Id<T>], random: &mut Random) -> Id<T> {
    let among = if random.below(4) == 0 { ids.len() as u64 + 1 } else { 8 };
    let back = random.below(among) as usize;
    ids.iter().rev().nth(back).copied().unwrap_or_else(|| Id::of(RowId::from_number(7)))
}

fn message(id: Id<Message>, pool: &IdPool, random: &mut Random) -> Message {
    let parent = (random.below(3) == 0).then(|| pool.message(random));
    let author = pool.user(random);
    Message { id, author, parent, subject: few(random), score: score(random) }
}

fn name(random: &mut Random) -> String {
    let first = ["", "a", "b", "ba", "c", "\u{0}"][random.below(6) as usize];
    let second = ["", "a", "b", "\u{0}", "\u{1}", "\u{fffd}"][random.below(6) as usize];
    [first, second].concat()
}

pub(crate) fn few(random: &mut Random) -> Option<u8> {
    (random.below(4) > 0).then(|| random.below(3) as u8)
}

pub(crate) fn score(random: &mut Random) -> i64 {
    random.below(9).cast_signed() - 4
}

pub(crate) fn bound(random: &mut Random) -> Bound<Option<u8>> {
    match random.below(3) {
        0 => Bound::Included(few(random)),
        1 => Bound::Excluded(few(random)),
        _ => Bound::Unbounded,
    }
}

impl Model {
    /// Reads all tables, and checks that each index has exactly the entries of the rows.
    pub(crate) fn of(now: &Snapshot) -> Self {
        let users = now.all::<User>().map(|user| (user.id.row(), user)).collect();
        let messages = now.all::<Message>().map(|message| (message.id.row(), message)).collect();
        let model = Self { users, messages };
        let users = [
            (model.users_by(|user| user.name.clone()), two_ways::<_, _, &str>(now, User::BY_NAME)),
            (
                model.users_by(|user| (user.age, user.name.clone())),
                two_ways::<_, _, (Option<u8>,)>(now, User::BY_AGE_NAME),
            ),
        ];
        for (expected, [forth, back]) in users {
            assert_eq!(forth, expected);
            assert_eq!(back, expected);
        }
        let messages = [
            (
                model.messages_by(|message| (message.subject, message.score)),
                two_ways::<_, _, (Option<u8>,)>(now, Message::BY_SUBJECT_SCORE),
            ),
            (
                model.messages_by(|message| (message.author, message.score)),
                two_ways::<_, _, (Id<User>,)>(now, Message::BY_AUTHOR_SCORE),
            ),
        ];
        for (expected, [forth, back]) in messages {
            assert_eq!(forth, expected);
            assert_eq!(back, expected);
        }
        for message in model.messages.values() {
            let parent = message.parent.is_none_or(|id| model.messages.contains_key(&id.row()));
            assert!(parent && model.users.contains_key(&message.author.row()), "{message:?}");
        }
        model
    }

    /// The expected answer of the tables.
    pub(crate) fn ask(&self, query: &Query) -> String {
        let by_age = || self.users_by(|user| (user.age, user.name.clone())).into_iter();
        let by_name = || self.users_by(|user| user.name.clone()).into_iter();
        let by_author = || self.messages_by(|message| (message.author, message.score)).into_iter();
        let by_subject =
            || self.messages_by(|message| (message.subject, message.score)).into_iter();
        match query {
            Query::User(id) => format_rows(self.users.get(&id.row())),
            Query::Message(id) => format_rows(self.messages.get(&id.row())),
            Query::NewestUsers(count) => format_rows(self.users.values().rev().take(*count)),
            Query::Messages => format_rows(self.messages.values()),
            Query::Count => format_rows([self.users.len()]),
            Query::Name(name) => format_rows(by_name().find(|user| user.name == *name)),
            Query::Age(age) => format_rows(by_age().filter(|user| user.age == *age)),
            Query::AgeName(age, name) => {
                format_rows(by_age().filter(|user| user.age == *age && user.name == *name))
            }
            Query::Ages(from, until) => {
                format_rows(by_age().filter(|user| (*from, *until).contains(&user.age)))
            }
            Query::FirstNames(from, count) => {
                format_rows(by_name().filter(|user| user.name >= *from).take(*count))
            }
            Query::LastNames(until, count) => {
                format_rows(by_name().filter(|user| user.name <= *until).rev().take(*count))
            }
            Query::Author(author) => {
                format_rows(by_author().filter(|message| message.author == *author))
            }
            Query::AuthorScores(author, from, until) => {
                format_rows(by_author().filter(|message| {
                    message.author == *author && (*from..*until).contains(&message.score)
                }))
            }
            Query::Subject(subject) => {
                format_rows(by_subject().filter(|message| message.subject == *subject))
            }
            Query::SubjectScore(subject, score) => format_rows(
                by_subject()
                    .filter(|message| message.subject == *subject && message.score == *score),
            ),
            Query::Select(selection) => selection.expected(self),
        }
    }

    /// Applies an operation and returns the expected outcome. Ids are taken from `given`.
    pub(crate) fn apply(&mut self, operation: &Operation, given: &Outcome) -> Outcome {
        let id = if let Outcome::Added(id) = given { *id } else { RowId::default() };
        let refusal = match operation {
            Operation::AddUser(user) => self.refuse_user(RowId::default(), user),
            Operation::AddMessage(message) => self.refuse_message(RowId::default(), message),
            Operation::SetUser(user) => {
                let id = user.id.row();
                missing(&self.users, id).or_else(|| self.refuse_user(id, user))
            }
            Operation::SetMessage(message) => {
                let id = message.id.row();
                missing(&self.messages, id).or_else(|| self.refuse_message(id, message))
            }
            Operation::RemoveUser(id) => {
                let is_referenced = self.messages.values().any(|message| message.author == *id);
                (is_referenced && self.users.contains_key(&id.row())).then(still_referenced)
            }
            Operation::RemoveMessage(id) => {
                let names = |message: &Message| message.parent == Some(*id) && message.id != *id;
                let is_referenced = self.messages.values().any(names);
                (is_referenced && self.messages.contains_key(&id.row())).then(still_referenced)
            }
        };
        if let Some(error) = refusal {
            return Outcome::Refused(error);
        }
        let is_removed = match operation {
            Operation::AddUser(user) => {
                self.users.insert(id, User { id: Id::of(id), ..user.clone() });
                return Outcome::Added(id);
            }
            Operation::AddMessage(message) => {
                self.messages.insert(id, Message { id: Id::of(id), ..message.clone() });
                return Outcome::Added(id);
            }
            Operation::SetUser(user) => {
                self.users.insert(user.id.row(), user.clone());
                return Outcome::Set;
            }
            Operation::SetMessage(message) => {
                self.messages.insert(message.id.row(), message.clone());
                return Outcome::Set;
            }
            Operation::RemoveUser(id) => self.users.remove(&id.row()).is_some(),
            Operation::RemoveMessage(id) => self.messages.remove(&id.row()).is_some(),
        };
        if is_removed { Outcome::Removed } else { Outcome::NothingToRemove }
    }

    fn refuse_user(&self, own: RowId, user: &User) -> Option<Error> {
        let is_duplicate =
            self.users.iter().any(|(id, other)| *id != own && other.name == user.name);
        is_duplicate.then(|| duplicate("name", &[]))
    }

    fn refuse_message(&self, own: RowId, message: &Message) -> Option<Error> {
        let is_duplicate = |(id, other): (&RowId, &Message)| {
            let key = (message.subject, message.score);
            *id != own && message.subject.is_some() && (other.subject, other.score) == key
        };
        missing(&self.users, message.author.row())
            .or_else(|| {
                let parent = message.parent.map(Id::row).filter(|parent| *parent != own);
                parent.and_then(|parent| missing(&self.messages, parent))
            })
            .or_else(|| {
                let taken = duplicate("subject", &["score"]);
                self.messages.iter().any(is_duplicate).then_some(taken)
            })
    }

    fn users_by<K: Ord>(&self, key: impl Fn(&User) -> K) -> Vec<User> {
        let mut users: Vec<User> = self.users.values().cloned().collect();
        users.sort_by_key(|user| (key(user), user.id.row()));
        users
    }

    fn messages_by<K: Ord>(&self, key: impl Fn(&Message) -> K) -> Vec<Message> {
        let mut messages: Vec<Message> = self.messages.values().cloned().collect();
        messages.sort_by_key(|message| (key(message), message.id.row()));
        messages
    }
}

fn duplicate(column: &'static str, with: &[&'static str]) -> Error {
    let with = with.iter().map(|column| (*column).into()).collect();
    let fault = ValueFault::Duplicate { with };
    Error::InvalidValues(vec![InvalidValue { column: column.into(), label: None, fault }])
}

/// All rows of an index, iterated from both ends, both results in index order.
fn two_ways<T: Table, K, P: KeyParts<K>>(now: &Snapshot, by: IndexOf<T, K>) -> [Vec<T>; 2] {
    let forth = now.range::<T, K, P>(by, ..).collect();
    let mut back: Vec<T> = now.range::<T, K, P>(by, ..).rev().collect();
    back.reverse();
    [forth, back]
}

fn missing<T: Table>(rows: &BTreeMap<RowId, T>, id: RowId) -> Option<Error> {
    (!rows.contains_key(&id)).then(|| Error::NoSuchRow { table: T::NAME.into(), id })
}

fn still_referenced() -> Error {
    Error::StillReferenced { by: "message".into() }
}

pub(crate) fn format_rows<R: Debug>(rows: impl IntoIterator<Item = R>) -> String {
    format!("{:?}", rows.into_iter().collect::<Vec<R>>())
}
