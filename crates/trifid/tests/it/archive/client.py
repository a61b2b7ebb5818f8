"""What a user of pyVO does: look at the tables, ask, submit a job, join an upload, read every format."""

import io
import sys

import numpy as np
import pyvo
from astropy.io import fits
from astropy.table import Table

service = pyvo.dal.TAPService(sys.argv[1])

tables = set(service.tables.keys())
assert {"demo.hipparcos", "demo.exposures", "ivoa.obscore", "TAP_SCHEMA.columns"} <= tables, tables
assert service.tables["demo.hipparcos"].columns[1].unit == "deg"

stars = service.search("SELECT TOP 3 hip, hpmag FROM demo.hipparcos ORDER BY hpmag").to_table()
assert list(stars["hip"]) == [32349, 30438, 91262], stars

cut = service.run_sync("SELECT hip FROM demo.hipparcos", maxrec=5)
assert len(cut) == 5 and cut.query_status == "OVERFLOW", cut.query_status

job = service.submit_job("SELECT TOP 7 hip, ra, dec FROM demo.hipparcos ORDER BY hip", maxrec=100)
assert job.phase == "PENDING", job.phase
job.run()
job.wait(timeout=60)
assert job.phase == "COMPLETED", job.phase
assert list(job.fetch_result()["hip"]) == [1, 2, 3, 4, 5, 6, 7]
job.delete()

broken = service.submit_job("SELECT nothing FROM demo.hipparcos")
broken.run()
broken.wait(timeout=60)
assert broken.phase == "ERROR", broken.phase
try:
    broken.raise_if_error()
    raise AssertionError("a failed job raised nothing")
except pyvo.dal.DALQueryError as error:
    assert "there is no column nothing" in str(error), error
broken.delete()

mine = Table({"name": ["Pleiades", "Præsepe"], "ra": [56.6, 130.1], "dec": [24.1, 19.7]})
query = """
    SELECT u.name, COUNT(*) AS stars FROM TAP_UPLOAD.mine AS u
    JOIN demo.hipparcos AS h ON DISTANCE(u.ra, u.dec, h.ra, h.dec) < 1
    GROUP BY u.name ORDER BY stars DESC
"""
for run in (service.run_sync, service.run_async):
    found = run(query, uploads={"mine": mine}).to_table()
    assert list(found["name"]) == ["Pleiades", "Præsepe"], found
    assert list(found["stars"]) == [25, 14], found

try:
    service.search("SELECT hip FORM demo.hipparcos")
    raise AssertionError("bad ADQL raised nothing")
except pyvo.dal.DALQueryError as error:
    assert "line 1, column" in str(error), error

# The same rows in every format that astropy reads.
query = """
    SELECT h.hip, h.ra, h.hpmag, e.target, e."begin" FROM demo.hipparcos AS h, demo.exposures AS e
    WHERE h.hip < 4 AND e.exposure_id < 'PL00003' ORDER BY h.hip, e.exposure_id
"""


def raw(form):
    answer = service._session.post(f"{service.baseurl}/sync", data={"LANG": "ADQL", "QUERY": query, "FORMAT": form})
    assert answer.status_code == 200, (form, answer.status_code, answer.text)
    return io.BytesIO(answer.content)


expected = Table.read(raw("votable/td"), format="votable")
assert len(expected) == 6
for form in ("votable/b2", "votable/binary"):
    found = Table.read(raw(form), format="votable")
    for name in expected.colnames:
        assert np.all(found[name] == expected[name]), (form, name)
found = Table.read(raw("csv"), format="ascii.csv")
assert np.all(found["ra"] == expected["ra"])
with fits.open(raw("fits")) as hdus:
    assert np.all(hdus[1].data["ra"] == expected["ra"])
    assert [text.strip() for text in hdus[1].data["target"]] == list(expected["target"])

print("all is well")
