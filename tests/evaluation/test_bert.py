from __future__ import annotations

from pathlib import Path

import pytest

from rvt_ray.errors import MissingDependencyError
from rvt_ray.evaluation.bert import BertScorer

SENTENCE = "the dog runs left to a red ball"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT with random weights: what it thinks of texts means nothing, the arithmetic is the real one."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    folder = tmp_path_factory.mktemp("bert")
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *sorted({*SENTENCE.split(), "stays", "it"})]
    (folder / "vocab.txt").write_text("\n".join(vocabulary))
    transformers.BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder)
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
    )
    transformers.BertModel(config).save_pretrained(folder)
    return folder


def test_the_same_text_scores_one_and_an_empty_one_nothing(model):
    scorer = BertScorer(str(model))
    assert scorer.score(SENTENCE, SENTENCE) == pytest.approx(1)
    assert scorer.score(SENTENCE, " ") == 0
    assert scorer.score("", SENTENCE) == 0


def test_f1_is_of_greedy_matches_of_the_texts_own_tokens(model):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    reference, answer = "the dog runs left", "a red ball stays unheard it"
    tokenizer = transformers.AutoTokenizer.from_pretrained(model)
    bert = transformers.AutoModel.from_pretrained(model).eval()

    def vectors(text):
        with torch.no_grad():
            out = bert(**tokenizer(text, return_tensors="pt"), output_hidden_states=True).hidden_states[1][0]
        return [v / v.norm() for v in out]

    a, r = vectors(answer), vectors(reference)
    precision = [max(float(x @ y) for y in r) for x in a[1:-1]]  # [CLS] and [SEP] are matched, not averaged
    recall = [max(float(x @ y) for x in a) for y in r[1:-1]]
    p, q = sum(precision) / len(precision), sum(recall) / len(recall)
    assert BertScorer(str(model), layer=1).score(reference, answer) == pytest.approx(2 * p * q / (p + q))


def test_the_layer_is_part_of_the_name_and_must_exist(model):
    assert BertScorer(str(model)).name == f"{model}, layer 2"
    with pytest.raises(MissingDependencyError, match="has layers 1 to 2, not 3"):
        BertScorer(str(model), layer=3)


def test_a_text_that_is_too_long_for_the_model_is_cut_off(model):
    assert 0 < BertScorer(str(model)).score(SENTENCE, "the dog " * 1000) <= 1


def test_missing_weights_say_what_to_give(tmp_path):
    with pytest.raises(MissingDependencyError, match="Give a folder with the model's files"):
        BertScorer(str(tmp_path))
