"""All jobs by their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tetrathlon.envs.tools.files import line_jobs, name_jobs, table_jobs
from tetrathlon.envs.tools.files.draft import Draft

JOBS: Mapping[str, Callable[[Draft], str]] = {
    job.__name__: job
    for job in (
        line_jobs.find_file,
        line_jobs.extract_lines,
        line_jobs.sort_lines,
        line_jobs.drop_doubles,
        line_jobs.renumber_list,
        line_jobs.replace_word,
        line_jobs.put_on_top,
        line_jobs.split_file,
        line_jobs.join_files,
        line_jobs.count_lines,
        name_jobs.rename_by_rule,
        name_jobs.delete_old,
        name_jobs.sort_into_folders,
        name_jobs.close_gaps,
        name_jobs.mend_link,
        table_jobs.set_value,
        table_jobs.filter_rows,
        table_jobs.sort_table,
        table_jobs.merge_tables,
        table_jobs.to_json,
        table_jobs.add_total,
    )
}
"""Name -> what adds the files of a job to a draft and returns what is asked."""
