"""How each predicate is said in English: verb phrases per predicate and scope, and the words that show it.

Verbs stand in angle brackets (`rvt_ray.queries.english`), `{o}` is the other object, `{k}` the range of a
superlative ("of all"). `cues` are the regular expressions of which a faithful wording contains at least one.
"""

from __future__ import annotations

from dataclasses import dataclass

from rvt_ray.twin.facts.scopes import END, SOME_TIME, START, THROUGHOUT, WHILE_MOVING


@dataclass(frozen=True)
class Phrases:
    """The ways to say one predicate.

    Attributes:
        places: complements of "to be" that describe a state ("to the left of {o}"); they take a scope.
        states: verb phrases that describe a state ("<touch> {o}"); they take a scope as an adverb.
        events: verb phrases that stand for themselves.
        passives: verb phrases with the roles exchanged, for relations that have no inverse predicate.
        cues: regular expressions over the lower-case text.
    """

    places: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    events: tuple[str, ...] = ()
    passives: tuple[str, ...] = ()
    cues: tuple[str, ...] = ()


WHILE_MOVING_ADVERBS = ("while moving", "while in motion", "while on the move")
# A state in time. `light` phrases are short; `heavy` ones hold a relative clause, so that an adverb after
# them would attach to the wrong verb.
PLACE_SCOPES: dict[str | None, dict[str, tuple[str, ...]]] = {
    None: {"light": ("<be> {p}",), "heavy": ("<be> {p}",)},
    START: {
        "light": (
            "<start> out {p}",
            "<begin> {p}",
            "<be> {p} at the start",
            "<be> {p} at first",
            "<be> {p} when the clip begins",
        ),
        "heavy": (
            "<start> out {p}",
            "<begin> {p}",
            "at the start <be> {p}",
            "at first <be> {p}",
        ),
    },
    END: {
        "light": (
            "<end> up {p}",
            "<finish> {p}",
            "<be> {p} at the end",
            "<be> {p} when the clip ends",
            "<be> {p} in the end",
        ),
        "heavy": ("<end> up {p}", "<finish> {p}", "at the end <be> {p}", "in the end <be> {p}"),
    },
    THROUGHOUT: {
        "light": ("always <stay> {p}", "<be> {p} the whole time", "<be> {p} from start to finish"),
        "heavy": ("always <stay> {p}", "from start to finish <be> {p}", "the whole time <be> {p}"),
    },
    SOME_TIME: {
        "light": (
            "<be> {p} at some point",
            "<be> {p} for at least a moment",
            "<be> {p} at one time or another",
        ),
        "heavy": ("at some point <be> {p}", "for at least a moment <be> {p}"),
    },
    # Before the verb, so that it is the subject that moves: "near the dog while moving" is heard of the dog.
    WHILE_MOVING: {
        "light": tuple(f"{adverb} <be> {{p}}" for adverb in WHILE_MOVING_ADVERBS),
        "heavy": tuple(f"{adverb} <be> {{p}}" for adverb in WHILE_MOVING_ADVERBS),
    },
}
STATE_SCOPES: dict[str | None, dict[str, tuple[str, ...]]] = {
    None: {"light": ("{s}",), "heavy": ("{s}",)},
    START: {
        "light": ("{s} at the start", "{s} at first", "{s} when the clip begins"),
        "heavy": ("at the start {s}", "at first {s}"),
    },
    END: {
        "light": ("{s} at the end", "{s} in the end", "{s} when the clip ends"),
        "heavy": ("at the end {s}", "in the end {s}"),
    },
    THROUGHOUT: {
        "light": ("always {s}", "{s} from start to finish", "{s} the whole time"),
        "heavy": ("always {s}", "from start to finish {s}"),
    },
    SOME_TIME: {
        "light": ("{s} at some point", "{s} for at least a moment", "{s} at one time or another"),
        "heavy": ("at some point {s}", "for at least a moment {s}"),
    },
    WHILE_MOVING: {
        "light": tuple(f"{adverb} {{s}}" for adverb in WHILE_MOVING_ADVERBS),
        "heavy": tuple(f"{adverb} {{s}}" for adverb in WHILE_MOVING_ADVERBS),
    },
}
# What shows the scope in a wording.
SCOPE_CUES: dict[str, tuple[str, ...]] = {
    START: (r"\b(start|begin|beginning|begins|starts|first|initially|opens|opening|outset)\b",),
    END: (r"\b(end|ends|ending|finish|finishes|finally|last|eventually|close|final)\b",),
    THROUGHOUT: (
        r"\b(always|whole|entire|throughout|start to finish|all the while|all along|constantly|never"
        r"|stays?|remains?|beginning to end|first .* last)\b",
    ),
    SOME_TIME: (r"\b(some point|moment|one time|sometime|once|briefly|ever|a while|some time)\b",),
    # Not "while the cup moves": that is another one's moving.
    WHILE_MOVING: (
        r"\b(while|when|whenever|as long as)( (it|they)( is| are|'s|'re)?)?( itself| themselves)?"
        r" (moving|moves?|in motion|on the move)\b",
    ),
}

WHILE_MOVING_ITSELF = r"\b(that|which|who|and|also),? (while|when) (moving|in motion|on the move)\b"
"""Before what is said of the subject: after it ("near the dog while moving") it is heard of the other."""

_LEFT, _RIGHT = (r"\bleft\b|\bleftmost\b|\bleftwards?\b",), (r"\bright\b|\brightmost\b|\brightwards?\b",)

PHRASES: dict[str, Phrases] = {
    # semantic: worded by the speaker (head nouns, adjectives, functions); here only the unmarked form
    "category": Phrases(events=("<be> {v}",)),
    "colour": Phrases(events=("<be> {v}",)),
    "attribute": Phrases(events=("<be> {v}",)),
    "function": Phrases(events=("<be> <something> to {v}",)),
    "part_of": Phrases(
        events=("<be> a part of {o}", "<belong> to {o} as a part"), cues=(r"\bparts?\b|\bbelong",)
    ),
    "whole_of": Phrases(
        events=("<have> {o} as a part", "<include> {o} as one of several parts"),
        cues=(r"\bparts?\b|\binclude|\bhas\b|\bhave\b",),
    ),
    # spatial relations
    "left_of": Phrases(
        places=("to the left of {o}", "on the left-hand side of {o}", "further left than {o}"), cues=_LEFT
    ),
    "right_of": Phrases(
        places=("to the right of {o}", "on the right-hand side of {o}", "further right than {o}"), cues=_RIGHT
    ),
    "above": Phrases(
        places=("above {o}", "higher up in the picture than {o}", "further up than {o}"),
        cues=(r"\b(above|higher|over|further up|up)\b",),
    ),
    "below": Phrases(
        places=("below {o}", "lower down in the picture than {o}", "further down than {o}"),
        cues=(r"\b(below|lower|under|underneath|beneath|further down|down)\b",),
    ),
    "in_front_of": Phrases(
        places=("in front of {o}", "nearer to the camera than {o}", "closer to us than {o}"),
        cues=(r"\b(in front|nearer|closer)\b",),
    ),
    "behind": Phrases(
        places=("behind {o}", "farther from the camera than {o}", "further back than {o}"),
        cues=(r"\b(behind|farther|further (away|back|from)|beyond)\b",),
    ),
    "near": Phrases(
        places=("close to {o}", "near {o}", "not far from {o}"),
        cues=(r"\b(close|near|nearby|next to|beside|not far)\b",),
    ),
    "touching": Phrases(
        places=("in contact with {o}", "right up against {o}"),
        states=("<touch> {o}",),
        cues=(r"\btouch(es|ing)?\b|\bcontact\b|\bup against\b",),
    ),
    # Outlines are compared, not bodies: a child that passes behind another is surrounded by it, not inside.
    "inside": Phrases(
        places=("surrounded by {o}", "enclosed by {o}"),
        cues=(r"\b(inside|within|in|surrounded|enclosed)\b",),
    ),
    "contains": Phrases(
        states=("<surround> {o}", "<enclose> {o}"),
        cues=(r"\bcontain|\binside\b|\bwithin\b|\bhold|\bsurround|\benclos",),
    ),
    "larger": Phrases(
        states=(
            "<look> bigger than {o}",
            "<take> up more of the picture than {o}",
            "<appear> larger than {o}",
        ),
        cues=(r"\b(bigger|larger|more of)\b",),
    ),
    "smaller": Phrases(
        states=(
            "<look> smaller than {o}",
            "<take> up less of the picture than {o}",
            "<appear> tinier than {o}",
        ),
        cues=(r"\b(smaller|less of|tinier)\b",),
    ),
    "region": Phrases(places=("in the {v} part of the picture",)),
    # superlatives
    "leftmost": Phrases(places=("the leftmost {k}", "furthest to the left {k}"), cues=_LEFT),
    "rightmost": Phrases(places=("the rightmost {k}", "furthest to the right {k}"), cues=_RIGHT),
    "topmost": Phrases(
        places=("the topmost {k}", "highest up in the picture {k}"),
        cues=(r"\b(topmost|highest|top|uppermost)\b",),
    ),
    "bottommost": Phrases(
        places=("the bottommost {k}", "lowest down in the picture {k}"),
        cues=(r"\b(lowest|bottommost|bottom)\b",),
    ),
    "nearest": Phrases(
        places=("the nearest to the camera {k}", "closest to us {k}"),
        cues=(r"\b(nearest|closest|foremost)\b",),
    ),
    "farthest": Phrases(
        places=("the farthest from the camera {k}", "furthest away from us {k}"),
        cues=(r"\b(farthest|furthest)\b",),
    ),
    "largest": Phrases(
        states=("<look> the biggest {k}", "<appear> the largest {k}"),
        cues=(r"\b(biggest|largest|most)\b",),
    ),
    "smallest": Phrases(
        states=("<look> the smallest {k}", "<appear> the tiniest {k}"),
        cues=(r"\b(smallest|least|tiniest)\b",),
    ),
    # events of one object
    "enters": Phrases(
        events=(
            "<come> into view",
            "<enter> the picture",
            "<come> in from outside the picture",
            "<arrive> while the clip is running",
            "<move> into view from beyond the edge",
        ),
        cues=(r"\b(comes?|coming) (in|into)\b|\benter|\barriv|\binto (view|the)\b",),
    ),
    "leaves": Phrases(
        events=(
            "<leave> the picture",
            "<go> out of view",
            "<move> out of the picture",
            "<disappear> over the edge of the picture",
        ),
        cues=(r"\bleav(e|es|ing)\b|\bout of\b|\bdisappear|\bdepart|\bexit|\bgoes away\b|\boff\b",),
    ),
    "present_throughout": Phrases(
        events=(
            "<stay> in view the whole time",
            "<remain> in the picture from start to finish",
            "can be seen from the first moment to the last",
            "<be> there all along",
        ),
        cues=(
            r"\b(whole time|start to finish|first moment to the last|all along|throughout|always)\b",
            r"\bnever leaves?\b",
        ),
    ),
    "gets_hidden": Phrases(
        events=(
            "<be> out of sight for a while and then <come> back",
            "<get> hidden for a moment and <show> up again",
            "<vanish> behind something and <reappear>",
        ),
        cues=(r"\bhidden\b|\bout of sight\b|\bvanish|\breappear|\bhides?\b",),
    ),
    "moves_left": Phrases(
        events=("<move> to the left", "<travel> towards the left", "<head> leftwards", "<go> to the left"),
        cues=_LEFT,
    ),
    "moves_right": Phrases(
        events=(
            "<move> to the right",
            "<travel> towards the right",
            "<head> rightwards",
            "<go> to the right",
        ),
        cues=_RIGHT,
    ),
    "moves_up": Phrases(
        events=("<move> upwards in the picture", "<go> up in the picture", "<rise> in the picture"),
        cues=(r"\b(upwards?|up|rises?|rising|climbs?)\b",),
    ),
    "moves_down": Phrases(
        events=("<move> downwards in the picture", "<go> down in the picture", "<sink> lower in the picture"),
        cues=(r"\b(downwards?|down|sinks?|falls?|lower)\b",),
    ),
    "moves_towards_camera": Phrases(
        events=("<come> towards the camera", "<get> closer to the camera", "<move> towards us"),
        cues=(r"\b(towards?|closer|nearer|approach(es)?)\b",),
    ),
    "moves_away_from_camera": Phrases(
        events=("<go> away from the camera", "<move> away from us", "<recede> from the camera"),
        cues=(r"\b(away|recedes?|farther|further)\b",),
    ),
    "still": Phrases(
        events=("<stay> put", "<keep> still", "<remain> in place"),
        cues=(r"\b(still|stays?|put|in place|rests?|motionless|not move|stationary)\b",),
    ),
    "moves": Phrases(
        events=("<move> about", "<change> place", "<be> on the move", "<move>"),
        cues=(r"\bmov(e|es|ing)\b|\bchanges? place\b|\bon the move\b|\bin motion\b",),
    ),
    "starts_moving": Phrases(
        events=("<rest> for a while and then <start> to move", "<stand> still at first and then <set> off"),
        cues=(r"\bstarts? (to move|moving)\b|\bsets? off\b|\bbegins? (to move|moving)\b",),
    ),
    "stops_moving": Phrases(
        events=("<come> to a stop", "<move> for a while and then <stop>", "<come> to rest after moving"),
        cues=(r"\bstops?\b|\bto rest\b|\bhalts?\b|\bstandstill\b",),
    ),
    "fastest": Phrases(
        events=("<move> the fastest {k}", "<be> the quickest {k}"), cues=(r"\b(fastest|quickest)\b",)
    ),
    "slowest": Phrases(
        events=("<move> the slowest {k}", "<be> the slowest {k}"), cues=(r"\b(slowest|least quick)\b",)
    ),
    # events of two objects
    "faster": Phrases(
        events=("<move> faster than {o}", "<be> quicker than {o}"), cues=(r"\b(faster|quicker)\b",)
    ),
    "slower": Phrases(
        events=("<move> more slowly than {o}", "<be> slower than {o}"), cues=(r"\b(slower|slowly)\b",)
    ),
    "appears_before": Phrases(
        events=(
            "<appear> before {o}",
            "<show> up earlier than {o}",
            "<be> first seen before {o}",
            "<turn> up before {o}",
        ),
        cues=(r"\b(before|earlier|sooner)\b",),
    ),
    "appears_after": Phrases(
        events=(
            "<appear> after {o}",
            "<show> up later than {o}",
            "<be> first seen after {o}",
            "<turn> up after {o}",
        ),
        cues=(r"\b(after|later)\b",),
    ),
    "disappears_before": Phrases(
        events=(
            "<disappear> before {o}",
            "<be> gone sooner than {o}",
            "<be> last seen before {o}",
            "<vanish> before {o}",
        ),
        cues=(r"\b(before|earlier|sooner)\b",),
    ),
    "disappears_after": Phrases(
        events=("<disappear> after {o}", "<be> still there once {o} is gone", "<be> last seen after {o}"),
        cues=(r"\b(after|later|longer|still there|outlasts?)\b",),
    ),
    "approaches": Phrases(
        events=("<move> towards {o}", "<approach> {o}", "<close> in on {o}"),
        passives=("<be> approached by {o}",),
        cues=(r"\bapproach|\btowards?\b|\bcloses in\b|\bclose in\b|\bcloser to\b",),
    ),
    "moves_away_from": Phrases(
        events=("<move> away from {o}", "<get> further and further away from {o}", "<draw> away from {o}"),
        passives=("<be> the one that {o} moves away from",),
        cues=(r"\baway\b",),
    ),
    "follows": Phrases(
        events=("<follow> {o}", "<trail> along after {o}", "<travel> in the wake of {o}"),
        passives=("<be> followed by {o}",),
        cues=(r"\bfollow|\btrail|\bwake\b|\bchas",),
    ),
    "passes": Phrases(
        events=("<pass> {o}", "<go> past {o}", "<move> past {o}"),
        passives=("<be> passed by {o}",),
        cues=(r"\bpass(es|ed|ing)?\b|\bpast\b",),
    ),
    "hidden_by": Phrases(
        events=("<be> hidden by {o} for a while", "<get> covered up by {o} for a moment"),
        passives=("<hide> {o} for a while", "<cover> up {o} for a moment"),
        cues=(r"\bhid(e|es|den|ing)\b|\bcover|\bblock|\bobscur",),
    ),
    "changes_sides_with": Phrases(
        events=("<change> sides with {o}", "<swap> sides with {o}", "<trade> sides with {o}"),
        cues=(r"\bsides?\b",),
    ),
}

# A superlative before its noun: "the leftmost ball". Sizes are left out ("the biggest ball"
# is not the one that looks biggest), distances too ("the closest ball": to what?).
SUPERLATIVE_ADJECTIVES: dict[str, tuple[str, ...]] = {
    "leftmost": ("leftmost",),
    "rightmost": ("rightmost",),
    "topmost": ("topmost", "highest"),
    "bottommost": ("lowest", "bottommost"),
    "fastest": ("fastest", "quickest"),
    "slowest": ("slowest",),
}

REGION_PLACES: dict[str, tuple[str, ...]] = {
    "left": ("in the left part of the picture", "on the left side of the picture"),
    "right": ("in the right part of the picture", "on the right side of the picture"),
    "top": ("in the upper part of the picture", "towards the top of the picture"),
    "bottom": ("in the lower part of the picture", "towards the bottom of the picture"),
    "centre": ("in the middle of the picture", "around the centre of the picture"),
    "left half": ("in the left half of the picture", "left of the picture's middle"),
    "right half": ("in the right half of the picture", "right of the picture's middle"),
    "upper half": ("in the upper half of the picture", "above the picture's middle"),
    "lower half": ("in the lower half of the picture", "below the picture's middle"),
}
REGION_CUES: dict[str, tuple[str, ...]] = {
    "left": _LEFT,
    "right": _RIGHT,
    "top": (r"\b(upper|top|high)\b",),
    "bottom": (r"\b(lower|bottom|low)\b",),
    "centre": (r"\b(middle|cent(re|er)|central)\b",),
    "left half": _LEFT,
    "right half": _RIGHT,
    "upper half": (r"\b(upper|top|above)\b",),
    "lower half": (r"\b(lower|bottom|below)\b",),
}
