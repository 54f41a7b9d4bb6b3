"""BERTScore (Zhang et al. 2020, arXiv:1904.09675): greedy matching of contextual token embeddings.

Written on transformers, since the `bert-score` package no longer works with its current versions. Without
idf weights and without baseline rescaling, which are that package's defaults; the values agree with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rvt_ray.errors import MissingDependencyError

if TYPE_CHECKING:
    import torch

MAX_TOKENS = 512


class BertScorer:
    """BERTScore F1 with a given model; there is no default, since the value means nothing without its name.

    Args:
        model: a folder or name that transformers can load.
        layer: whose output is compared, counted from 1 (the package's choice is 9 for bert-base-uncased and
            17 for roberta-large); None takes the last one.

    Raises:
        MissingDependencyError: transformers or the weights are absent, or the model has no such layer.
    """

    def __init__(self, model: str, layer: int | None = None) -> None:
        try:
            from transformers import AutoModel, AutoTokenizer
        except ImportError as error:
            raise MissingDependencyError("BERTScore needs transformers: pip install transformers") from error
        try:
            self._tokenizer: Any = AutoTokenizer.from_pretrained(model)
            self._model: Any = AutoModel.from_pretrained(model).eval()
        except (OSError, KeyError, ValueError) as error:
            raise MissingDependencyError(
                f"BERTScore cannot load {model!r}: {error}. Give a folder with the model's files"
            ) from error
        layers = self._model.config.num_hidden_layers
        if layer is not None and not 1 <= layer <= layers:
            raise MissingDependencyError(f"BERTScore: {model!r} has layers 1 to {layers}, not {layer}")
        self._layer = layer or layers
        self.name = f"{model}, layer {self._layer}"

    def score(self, reference: str, answer: str) -> float:
        """F1 of one answer, at most 1; 0 for an empty text.

        Precision is the mean over the answer's tokens of the highest cosine similarity with a token of the
        reference, recall the same the other way round. A model's special tokens may be matched but are not
        averaged over. Texts are cut off after `MAX_TOKENS` tokens.
        """
        import torch

        if not answer.strip() or not reference.strip():
            return 0.0
        with torch.inference_mode():
            mine, own = self._embed(answer)
            theirs, their_own = self._embed(reference)
            similarity = mine @ theirs.T
            precision = similarity.max(dim=1).values[own].mean()
            recall = similarity.max(dim=0).values[their_own].mean()
            f1 = 2 * precision * recall / (precision + recall)
        return float(f1.nan_to_num(0.0))

    def _embed(self, text: str) -> tuple[torch.Tensor, torch.Tensor]:
        """Unit vectors (tokens, width), and which tokens are the text's own."""
        import torch

        limit = min(MAX_TOKENS, self._tokenizer.model_max_length)
        tokens = self._tokenizer(text.strip(), return_tensors="pt", truncation=True, max_length=limit)
        hidden = self._model(**tokens, output_hidden_states=True).hidden_states[self._layer][0]
        special = torch.isin(tokens["input_ids"][0], torch.tensor(self._tokenizer.all_special_ids))
        unknown = tokens["input_ids"][0] == (self._tokenizer.unk_token_id or -1)
        return torch.nn.functional.normalize(hidden, dim=-1), ~special | unknown
