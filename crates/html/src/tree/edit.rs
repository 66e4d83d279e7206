//! Decides how a tree is changed at the elements that a selector means.

use alloc::vec::Vec;
use core::{iter, mem};

use super::search::Mark;
use super::selector::{AsSelector, SelectorError};
use super::{Element, Node, Refused, Tree};

/// Where new nodes go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// In front of the element.
    Before,
    /// In the element, in front of all that is in it.
    First,
    /// In the element, behind all that is in it.
    Last,
    /// Behind the element.
    After,
}

/// By selector, as [`find`](Tree::find). What is changed is copied where it is shared, and so is what is around it.
impl Tree {
    /// Changes each element that is meant: the last first, and those within others before these. Says how many there
    /// were.
    ///
    /// # Errors
    ///
    /// What is wrong with the selector, or the first thing that `change` was refused; what is left is not changed then.
    pub fn change(
        &mut self,
        selector: &(impl AsSelector + ?Sized),
        mut change: impl FnMut(&mut Element) -> Result<(), Refused>,
    ) -> Result<usize, Refused> {
        let mut outcome = Ok(());
        let count = self.edit(selector, |siblings, place| {
            if let Some(element) = siblings[place].as_element_mut()
                && outcome.is_ok()
            {
                outcome = change(element);
            }
        })?;
        outcome.map(|()| count)
    }

    /// Puts `nodes` to each element that is meant. Says how many there were.
    ///
    /// # Errors
    ///
    /// What is wrong with the selector, and where; so do the others.
    pub fn insert(
        &mut self,
        selector: &(impl AsSelector + ?Sized),
        place: Place,
        nodes: impl Into<Self>,
    ) -> Result<usize, SelectorError> {
        let nodes = nodes.into();
        self.edit(selector, |siblings, at| {
            let (into, at) = match place {
                Place::Before => (siblings, at),
                Place::After => (siblings, at + 1),
                Place::First | Place::Last => {
                    let Some(element) = siblings[at].as_element_mut() else { return };
                    let at = if place == Place::First { 0 } else { element.children().len() };
                    (element.children_mut(), at)
                }
            };
            into.splice(at..at, nodes.roots().iter().cloned());
        })
    }

    /// Puts `nodes` in the place of each element that is meant, with all that is in it. Says how many there were.
    pub fn replace(
        &mut self,
        selector: &(impl AsSelector + ?Sized),
        nodes: impl Into<Self>,
    ) -> Result<usize, SelectorError> {
        let nodes = nodes.into();
        self.edit(selector, |siblings, place| {
            siblings.splice(place..=place, nodes.roots().iter().cloned());
        })
    }

    /// Takes away each element that is meant, with all that is in it. Says how many there were.
    pub fn remove(
        &mut self,
        selector: &(impl AsSelector + ?Sized),
    ) -> Result<usize, SelectorError> {
        self.replace(selector, Self::new())
    }

    /// Calls `act` for each element that is meant, with its siblings and its place among them: the last ones first, and
    /// what is in an element before it, so that no place is wrong by what was done before.
    fn edit(
        &mut self,
        selector: &(impl AsSelector + ?Sized),
        mut act: impl FnMut(&mut Vec<Node>, usize),
    ) -> Result<usize, SelectorError> {
        let marks = self.marks(selector)?;
        // Elements on the way to what is changed, taken from their places while they are.
        let mut open: Vec<(usize, Element)> = Vec::new();
        for (index, mark) in marks.iter().enumerate().rev() {
            let opened = open.pop_if(|(opened, _)| *opened == index);
            if opened.is_none() {
                self.open(&marks, mark.outer, &mut open);
            }
            let siblings = self.innermost(&mut open);
            if let Some((_, element)) = opened {
                siblings[mark.place] = element.into();
            }
            if mark.is_meant {
                act(siblings, mark.place);
            }
        }
        Ok(marks.iter().filter(|mark| mark.is_meant).count())
    }

    fn marks(&self, selector: &(impl AsSelector + ?Sized)) -> Result<Vec<Mark>, SelectorError> {
        let mut found = self.find_all(selector)?;
        let mut marks = Vec::new();
        while found.next().is_some() {
            found.mark(&mut marks);
        }
        Ok(marks)
    }

    /// Opens an element and all around it that are not yet open.
    fn open(&mut self, marks: &[Mark], target: Option<usize>, open: &mut Vec<(usize, Element)>) {
        let top = open.last().map(|(opened, _)| *opened);
        let up = iter::successors(target, |index| marks[*index].outer);
        let mut closed: Vec<usize> = up.take_while(|index| Some(*index) != top).collect();
        while let Some(index) = closed.pop() {
            let node = &mut self.innermost(open)[marks[index].place];
            // Nobody sees the empty text: the element comes back.
            if let Node::Element(element) = mem::replace(node, Node::text("")) {
                open.push((index, element));
            }
        }
    }

    fn innermost<'a>(&'a mut self, open: &'a mut [(usize, Element)]) -> &'a mut Vec<Node> {
        match open.last_mut() {
            Some((_, element)) => element.children_mut(),
            None => self.roots_mut(),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString as _;

    use proptest::prelude::*;

    use super::*;

    fn element(name: &'static str, children: impl IntoIterator<Item = Node>) -> Node {
        let mut element = Element::new(name).unwrap();
        element.children_mut().extend(children);
        element.into()
    }

    fn list() -> Tree {
        let item = |text: &'static str| element("li", [text.into()]);
        Tree::from(element("ul", [item("a"), element("li", [element("ul", [item("b")])])]))
    }

    #[test]
    fn nodes_are_put_to_each_place() {
        for (place, expected) in [
            (Place::Before, "-<ul><li>a</li><li>-<ul><li>b</li></ul></li></ul>"),
            (Place::First, "<ul>-<li>a</li><li><ul>-<li>b</li></ul></li></ul>"),
            (Place::Last, "<ul><li>a</li><li><ul><li>b</li>-</ul></li>-</ul>"),
            (Place::After, "<ul><li>a</li><li><ul><li>b</li></ul>-</li></ul>-"),
        ] {
            let mut tree = list();
            assert_eq!(tree.insert("ul", place, "-").unwrap(), 2);
            assert_eq!(tree.to_string(), expected);
        }
    }

    #[test]
    fn what_is_replaced_or_removed_goes_with_all_that_is_in_it() {
        let check = |mut tree: Tree, selector: &str, count, expected: &str| {
            assert_eq!(
                tree.replace(selector, [Node::text("x"), "y".into()].into_iter().collect::<Tree>()),
                Ok(count)
            );
            assert_eq!(tree.text(), expected);
        };
        check(list(), "li", 3, "xyxy");
        check(list(), "ul", 2, "xy");
        check(list(), "li li", 1, "axy");
        check(list(), "p", 0, "ab");
        let mut tree = list();
        assert_eq!(tree.remove("ul ul"), Ok(1));
        assert_eq!(
            tree,
            Tree::from(element("ul", [element("li", ["a".into()]), element("li", [])]))
        );
        assert!(tree.remove("").is_err());
    }

    #[test]
    fn a_change_reaches_each_and_leaves_clones_alone() {
        let mut tree = list();
        let before = tree.clone();
        let count = tree.change("li", |item| {
            item.push("!");
            Ok(())
        });
        let count = count.unwrap();
        assert_eq!((count, &*tree.text(), &*before.text()), (3, "a!b!!", "ab"));
        assert_eq!(tree.find("ul ul li").unwrap().unwrap().text(), "b!");
        assert!(tree.find("p").unwrap().is_none());
        assert_eq!(tree.change("li", |item| item.set_attribute("id", 7)), Ok(3));
        let refused = tree.change("li", |item| item.set_attribute("a b", 8));
        assert_eq!(refused, Err(Refused::AttributeName("a b".into())));
        assert!(matches!(tree.change("", |_| Ok(())), Err(Refused::Selector(_))));
        assert_eq!(tree.find_all("[id='7']").unwrap().count(), 3);
    }

    /// The story: a way kept for each element that is meant makes a change of a deep tree take its depth squared.
    #[test]
    fn every_level_of_a_deep_tree_can_be_changed() {
        let mut tree = Tree::from("x");
        for _ in 0..100_000 {
            let inner = tree.roots_mut().pop().unwrap();
            tree = Tree::from(element("i", [inner]));
        }
        let copy = tree.clone();
        assert_eq!(tree.insert("i", Place::First, "y"), Ok(100_000));
        assert_eq!(tree.text().len(), 100_001);
        assert_eq!(tree.remove("i > i"), Ok(99_999));
        assert_eq!((&*tree.text(), &*copy.text()), ("y", "x"));
    }

    fn trees() -> impl Strategy<Value = Node> {
        let leaf =
            prop_oneof![Just(Node::text("x")), Just(element("a", [])), Just(element("b", []))];
        leaf.prop_recursive(6, 40, 4, |inner| {
            let children = prop::collection::vec(inner, 0..4);
            (prop::bool::ANY, children)
                .prop_map(|(is_a, children)| element(if is_a { "a" } else { "b" }, children))
        })
    }

    /// The same by calls upon calls, without sharing.
    fn replaced(nodes: &[Node], place: Option<Place>) -> Vec<Node> {
        let mut done = Vec::new();
        for node in nodes {
            let Node::Element(before) = node else {
                done.push(node.clone());
                continue;
            };
            let mut element = before.clone();
            *element.children_mut() = replaced(before.children(), place);
            let is_meant = before.name() == "a";
            match place {
                Some(Place::First) if is_meant => element.children_mut().insert(0, "!".into()),
                Some(Place::Last) if is_meant => element.push("!"),
                _ => {}
            }
            match place {
                None if is_meant => done.push("!".into()),
                Some(Place::Before) if is_meant => done.extend(["!".into(), element.into()]),
                Some(Place::After) if is_meant => done.extend([element.into(), "!".into()]),
                _ => done.push(element.into()),
            }
        }
        done
    }

    const PLACES: [Option<Place>; 5] =
        [None, Some(Place::Before), Some(Place::First), Some(Place::Last), Some(Place::After)];

    proptest! {
        #[test]
        fn an_edit_is_made_wherever_it_should_be_and_nowhere_else(
            roots in prop::collection::vec(trees(), 0..4),
            place in prop::sample::select(PLACES.as_slice()),
        ) {
            let original = Tree::from(roots);
            let before = original.to_string();
            let mut tree = original.clone();
            match place {
                None => tree.replace("a", "!").unwrap(),
                Some(place) => tree.insert("a", place, "!").unwrap(),
            };
            prop_assert_eq!(tree, Tree::from(replaced(original.roots(), place)));
            prop_assert_eq!(original.to_string(), before);
        }
    }
}
