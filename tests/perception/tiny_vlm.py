"""A vision-language model of some thousand random weights, in Hugging Face layout: Idefics3's shape, nobody's
knowledge. What it says is nonsense; that it is shown pictures and says it in the asked form is real."""

from __future__ import annotations

from pathlib import Path

SIDE, PATCH, SCALE = 56, 14, 2
_PICTURE = ("<image>", "<fake_token_around_image>", "<global-img>", "<end_of_utterance>")
_SPECIAL = ("<unk>", "<s>", "</s>", "<pad>", *_PICTURE)
_TEMPLATE = (
    "{% for message in messages %}{{ message['role'] }}: "
    "{% if message['content'] is string %}{{ message['content'] }}"
    "{% else %}{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<image>{% elif part['type'] == 'text' %}{{ part['text'] }}{% endif %}"
    "{% endfor %}{% endif %}\n{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}"
)


def build(folder: Path, seed: int = 0) -> Path:
    """Write model, tokenizer and image processor; needs torch and transformers."""
    import torch
    from transformers import (
        Idefics3Config,
        Idefics3ForConditionalGeneration,
        Idefics3ImageProcessor,
        Idefics3Processor,
    )

    tokenizer = _tokenizer()
    text = {
        "model_type": "llama",
        "vocab_size": len(tokenizer),
        "hidden_size": 64,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "max_position_embeddings": 8192,
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    }
    vision = {
        "hidden_size": 32,
        "intermediate_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "image_size": SIDE,
        "patch_size": PATCH,
    }
    config = Idefics3Config(
        vision_config=vision,
        text_config=text,
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
        pad_token_id=tokenizer.pad_token_id,
        scale_factor=SCALE,
        tie_word_embeddings=False,
    )
    torch.manual_seed(seed)
    Idefics3ForConditionalGeneration(config).save_pretrained(folder)
    images = Idefics3ImageProcessor(
        size={"longest_edge": SIDE}, max_image_size={"longest_edge": SIDE}, do_image_splitting=False
    )
    Idefics3Processor(
        image_processor=images,
        tokenizer=tokenizer,
        image_seq_len=(SIDE // PATCH // SCALE) ** 2,
        chat_template=_TEMPLATE,
    ).save_pretrained(folder)
    return folder


def _tokenizer():  # type: ignore[no-untyped-def]
    """One token per character: printable ASCII but for the backslash, so that no reply grows by escapes."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    # The byte-level alphabet writes a space and a newline as these two letters.
    letters = [chr(c) for c in range(33, 127) if chr(c) != "\\"] + ["\u0120", "\u010a"]
    vocabulary = {token: number for number, token in enumerate([*_SPECIAL, *letters])}
    plain = Tokenizer(models.BPE(vocab=vocabulary, merges=[], unk_token="<unk>"))
    plain.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    plain.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(
        tokenizer_object=plain,
        unk_token="<unk>",
        bos_token="<s>",
        eos_token="</s>",
        pad_token="<pad>",
        additional_special_tokens=list(_PICTURE),
        chat_template=_TEMPLATE,
    )
