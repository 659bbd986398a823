#!/usr/bin/env python3
"""Writes chat_templates.json: make_chat_templates.py. Chat templates in the styles of public models, and what Jinja (in the
environment of Hugging Face's apply_chat_template) makes of chats with them. Needs jinja2; the test does not.
"""
import json
from pathlib import Path

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment

LLAMA3 = """{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}"""
LLAMA31 = """{{- bos_token }}
{%- if custom_tools is defined %}
    {%- set tools = custom_tools %}
{%- endif %}
{%- if not date_string is defined %}
    {%- set date_string = "26 Jul 2024" %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}

{#- This block extracts the system message, so we can slot it into the right place. #}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}

{#- System message #}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\n" }}
{%- if tools is not none %}
    {{- "Environment: ipython\\n" }}
{%- endif %}
{{- "Cutting Knowledge Date: December 2023\\n" }}
{{- "Today Date: " + date_string + "\\n\\n" }}
{{- system_message }}
{{- "<|eot_id|>" }}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls|length == 1 %}
            {{- raise_exception("This model only supports single tool-calls at once!") }}
        {%- endif %}
        {%- set tool_call = message.tool_calls[0].function %}
        {{- '{"name": "' + tool_call.name + '", ' }}
        {{- '"parameters": ' }}
        {{- tool_call.arguments | tojson }}
        {{- "}" }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
"""
QWEN2 = """{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"""
QWEN25 = """{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {{- "# Tools" }}
    {%- for tool in tools %}
        {{- "\\n" }}
        {{- tool | tojson }}
    {%- endfor %}
{%- else %}
    {%- if messages[0]['role'] == 'system' %}
        {{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}
    {%- else %}
        {{- '<|im_start|>system\\nYou are Qwen, created by Alibaba Cloud. You are a helpful assistant.<|im_end|>\\n' }}
    {%- endif %}
{%- endif %}
{%- for message in messages %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) or (message.role == "assistant" and not message.tool_calls) %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "tool" %}
        {%- if (loop.index0 == 0) or (messages[loop.index0 - 1].role != "tool") %}
            {{- '<|im_start|>user' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""
GEMMA = """{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}{% if (message['role'] == 'assistant') %}{% set role = 'model' %}{% else %}{% set role = message['role'] %}{% endif %}{{ '<start_of_turn>' + role + '\n' + message['content'] | trim + '<end_of_turn>\n' }}{% endfor %}{% if add_generation_prompt %}{{'<start_of_turn>model\n'}}{% endif %}"""
MISTRAL = """{{ bos_token }}{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}{% if message['role'] == 'user' %}{{ '[INST] ' + message['content'] + ' [/INST]' }}{% elif message['role'] == 'assistant' %}{{ message['content'] + eos_token}}{% else %}{{ raise_exception('Only user and assistant roles are supported!') }}{% endif %}{% endfor %}"""
LANGUAGE = """{#- all that templates use -#}
{%- macro quote(text, mark='"') -%}
  {{ mark ~ text ~ mark }}
{%- endmacro -%}
{% set ns = namespace(count=0, last='') %}
{% for m in messages if m.role in ['user', 'assistant'] %}
  {% set ns.count = ns.count + 1 %}
  {{- quote(m.content.strip()) }} {{ m['role'] | upper }}{{ ',' if not loop.last else '.' }}
  {%- if loop.index is defined and loop.previtem is defined %} after {{ loop.previtem.content|length }}{% endif %}
{% endfor %}
{% for key, value in {'a': 1, 'b': 2}.items() %}{{ key }}={{ value }};{% endfor %}
{{ messages[-1].content.split('s')[0] }}|{{ [1, 2] + [3] | join('-') if false else 'none' }}
{{ ns.count }} {{ -3 // 2 }} {{ 7 % 4 }} {{ not messages }} {{ 'ab'[::-1] }} {{ 'it' is string and 1 is number }}
{% for i in range(5) %}{% if i == 1 %}{% continue %}{% endif %}{% if i == 3 %}{% break %}{% endif %}{{ i }}{% else %}never{% endfor %}
"""
TEMPLATES = {"llama3": (LLAMA3, "<|begin_of_text|>", "<|eot_id|>"), "llama3.1": (LLAMA31, "<|begin_of_text|>", "<|eot_id|>"),
             "qwen2": (QWEN2, "", "<|im_end|>"), "qwen2.5": (QWEN25, "", "<|im_end|>"), "gemma": (GEMMA, "<bos>", "<eos>"),
             "mistral": (MISTRAL, "<s>", "</s>"), "language": (LANGUAGE, "", "")}
CHAT = [("user", "What is a compiler?"), ("assistant", "It turns programs into others."), ("user", "Why's that useful?\nAnd how?")]


def main():
    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)
    out = []
    for name, (text, bos, eos) in TEMPLATES.items():
        env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
        env.globals["raise_exception"] = raise_exception
        chats = []
        for messages in (CHAT[:1], CHAT, [("system", "Be brief."), *CHAT[:1]]):
            messages = [{"role": r, "content": c} for r, c in messages]
            try:
                made = env.from_string(text).render(messages=messages, bos_token=bos, eos_token=eos, add_generation_prompt=True)
            except jinja2.exceptions.TemplateError as e:
                made = None
            chats.append({"messages": messages, "text": made})
        out.append({"name": name, "template": text, "bos": bos, "eos": eos, "turns": name != "language", "chats": chats})
    (Path(__file__).parent / "chat_templates.json").write_text(json.dumps(out, indent=1) + "\n")


if __name__ == "__main__":
    main()
